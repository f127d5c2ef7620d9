// Who wants to hear of what.

/** Callbacks by the name of what they want to hear. */
export class Listeners<Heard> {
  readonly #all = new Map<keyof Heard, Set<(told: never) => void>>();

  /** Calls back until the returned function is called. */
  on<K extends keyof Heard>(name: K, listener: (told: Heard[K]) => void): () => void {
    const some = this.#all.get(name) ?? new Set();
    this.#all.set(name, some.add(listener));
    return () => some.delete(listener);
  }

  /** Tells all. A listener that throws harms nobody else; its error is thrown where nobody catches it. */
  tell<K extends keyof Heard>(name: K, told: Heard[K]): void {
    for (const listener of [...(this.#all.get(name) ?? [])]) {
      try {
        (listener as (told: Heard[K]) => void)(told);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
