// Backoff: how long to wait before the next connection attempt.

/** Bounds and randomness of the wait. */
export interface BackoffOptions {
  /** The first wait, before jitter. */
  baseMs?: number;
  /** The longest wait. */
  maxMs?: number;
  /** Returns 0 to 1; replaced in tests. */
  random?: () => number;
}

/** Doubling waits with jitter, so that many clients do not reconnect at the same moment. */
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

  /** The next wait: between half of the step and the whole step. */
  next(): number {
    const step = Math.min(this.#maxMs, this.#baseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return step * (0.5 + this.#random() / 2);
  }

  /** Starts over with the shortest wait. */
  reset(): void {
    this.#failures = 0;
  }
}
