// Is the other side still there? A browser does not show the pings of its WebSocket.

/** How a silent line is dealt with. */
export interface PulseOptions {
  /** Ask after so much silence. */
  quietMs: number;
  /** The line is dead after so much more: a slow one may be busy with one large message. */
  patienceMs: number;
  ask(): void;
  /** Something should have been answered by now, or has been after all. */
  slow(is: boolean): void;
  dead(): void;
}

/** What was sent is answered sooner than this by a gateway that is well. */
const SOON_MS = 5_000;

/** Watches one line. */
export class Pulse {
  readonly #options: PulseOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #last = Date.now();
  #expected: number | undefined;
  #asked: number | undefined;
  #isSlow = false;

  constructor(options: PulseOptions) {
    this.#options = options;
    const { quietMs, patienceMs } = options;
    this.#timer = setInterval(() => this.#look(Date.now()), Math.max(50, Math.min(quietMs, patienceMs, SOON_MS) / 4));
  }

  /** Something was heard. */
  touch(): void {
    this.#last = Date.now();
    this.#expected = this.#asked = undefined;
    this.#tell(false);
  }

  /** Something was sent that is answered. */
  expect(): void {
    this.#expected ??= Date.now();
  }

  /** No more of this. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #look(now: number): void {
    const { quietMs, patienceMs, ask, dead } = this.#options;
    if (this.#asked === undefined) {
      const isOverdue = this.#expected !== undefined && now - this.#expected >= SOON_MS;
      if (now - this.#last < quietMs && !isOverdue) return;
      this.#asked = now;
      ask();
      return this.#tell(isOverdue);
    }
    if (now - this.#asked >= SOON_MS) this.#tell(true);
    if (now - this.#asked < patienceMs) return;
    this.stop();
    dead();
  }

  #tell(isSlow: boolean): void {
    if (isSlow === this.#isSlow) return;
    this.#isSlow = isSlow;
    this.#options.slow(isSlow);
  }
}
