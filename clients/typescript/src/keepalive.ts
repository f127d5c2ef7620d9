// Keepalive: pings a quiet connection and reports a slow or dead one. Needed because browsers hide the pings
// of their WebSockets.

/** Timings and callbacks of a keepalive. */
export interface KeepaliveOptions {
  /** Ping after this much silence. */
  idleMs: number;
  /**
   * Report the connection dead this long after an unanswered ping. Generous: a slow one may be busy with one
   * large message.
   */
  timeoutMs: number;
  ping(): void;
  /** An answer is overdue, or has arrived after all. */
  onSlow(isSlow: boolean): void;
  onDead(): void;
}

/** Answers that take longer than this count as slow. */
const SLOW_ANSWER_MS = 5_000;

/** Watches one connection. */
export class Keepalive {
  readonly #options: KeepaliveOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  #lastReceivedAt = Date.now();
  #expectedSince: number | undefined;
  #pingedAt: number | undefined;
  #isSlow = false;

  constructor(options: KeepaliveOptions) {
    this.#options = options;
    const { idleMs, timeoutMs } = options;
    this.#timer = setInterval(() => this.#check(Date.now()), Math.max(50, Math.min(idleMs, timeoutMs, SLOW_ANSWER_MS) / 4));
  }

  /** Call when bytes arrived. */
  received(): void {
    this.#lastReceivedAt = Date.now();
    this.#expectedSince = this.#pingedAt = undefined;
    this.#setSlow(false);
  }

  /** Call when something was sent that will be answered. */
  expectAnswer(): void {
    this.#expectedSince ??= Date.now();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #check(now: number): void {
    const { idleMs, timeoutMs, ping, onDead } = this.#options;
    if (this.#pingedAt === undefined) {
      const isOverdue = this.#expectedSince !== undefined && now - this.#expectedSince >= SLOW_ANSWER_MS;
      if (now - this.#lastReceivedAt < idleMs && !isOverdue) return;
      this.#pingedAt = now;
      ping();
      return this.#setSlow(isOverdue);
    }
    if (now - this.#pingedAt >= SLOW_ANSWER_MS) this.#setSlow(true);
    if (now - this.#pingedAt < timeoutMs) return;
    this.stop();
    onDead();
  }

  #setSlow(isSlow: boolean): void {
    if (isSlow === this.#isSlow) return;
    this.#isSlow = isSlow;
    this.#options.onSlow(isSlow);
  }
}
