// Listeners: callbacks by event name.

/** Callbacks by event name. */
export class Listeners<Events> {
  readonly #all = new Map<keyof Events, Set<(payload: never) => void>>();

  /** Registers a callback; the returned function removes it. */
  on<K extends keyof Events>(name: K, listener: (payload: Events[K]) => void): () => void {
    const set = this.#all.get(name) ?? new Set();
    this.#all.set(name, set.add(listener));
    return () => set.delete(listener);
  }

  /** Calls every listener. One that throws stops no other: its error is rethrown as an uncaught one. */
  emit<K extends keyof Events>(name: K, payload: Events[K]): void {
    for (const listener of [...(this.#all.get(name) ?? [])]) {
      try {
        (listener as (payload: Events[K]) => void)(payload);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
