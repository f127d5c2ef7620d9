// Is the other side still there? A browser does not show the pings of its WebSocket.

/** How a silent line is dealt with. */
export interface PulseOptions {
  /** Ask after so much silence. */
  quietMs: number;
  /** The line is dead after so much more. */
  patienceMs: number;
  ask(): void;
  dead(): void;
}

/** Watches one line. */
export class Pulse {
  #last = Date.now();
  #asked = false;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor({ quietMs, patienceMs, ask, dead }: PulseOptions) {
    this.#timer = setInterval(() => {
      const silence = Date.now() - this.#last;
      if (silence >= quietMs + patienceMs) {
        this.stop();
        dead();
      } else if (silence >= quietMs && !this.#asked) {
        this.#asked = true;
        ask();
      }
    }, Math.max(50, Math.min(quietMs, patienceMs) / 4));
  }

  /** Something was heard. */
  touch(): void {
    this.#last = Date.now();
    this.#asked = false;
  }

  /** No more of this. */
  stop(): void {
    clearInterval(this.#timer);
  }
}
