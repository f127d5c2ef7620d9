// How long to wait before the next try.

/** Bounds of the wait. */
export interface BackoffOptions {
  /** About the first wait. */
  baseMs?: number;
  /** The longest one. */
  maxMs?: number;
  /** From 0 to 1, for tests. */
  random?: () => number;
}

/** Waits that double, with chance in them so that many clients do not come back at one moment. */
export class Backoff {
  #failures = 0;
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;

  constructor({ baseMs = 250, maxMs = 30_000, random = Math.random }: BackoffOptions = {}) {
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#random = random;
  }

  /** The next wait: between half of its step and all of it. */
  next(): number {
    const step = Math.min(this.#maxMs, this.#baseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return step * (0.5 + this.#random() / 2);
  }

  /** It went well: begin with short waits again. */
  reset(): void {
    this.#failures = 0;
  }
}
