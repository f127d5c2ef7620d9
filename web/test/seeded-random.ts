// Seeded random: the same sequence for the same seed.

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2_654_435_761 + 1;
  }

  /** At least 0, less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** An integer from 0 to `end` - 1. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  chance(likelihood: number): boolean {
    return this.next() < likelihood;
  }

  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }
}
