// Timeline builder: a mutable copy of a timeline for folding many events at once.
import type { Protocol } from '@switchboard/client';
import type { Entry, Timeline } from '../timeline';
import type { Boundary, Rewrite } from './boundary';

type Kind = Entry['kind'];
type Of<K extends Kind> = Extract<Entry, { kind: K }>;
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** How many of the newest entries are searched before an index is built. */
const RECENT_ENTRIES = 16;

export class TimelineBuilder {
  current: Boundary['current'];
  firstRun: Boundary['firstRun'];
  unmatchedEnds: Boundary['unmatchedEnds'];
  readonly ended: Map<string, number>;
  readonly resolved: Map<string, { resolved: Protocol.Resolved; offset: number; at: string }>;
  readonly settled: Map<string, number>;
  readonly rewritten: Map<string, Rewrite>;
  readonly #entries: Entry[];
  /** Entries created by this builder, which it may change in place. */
  readonly #ownEntries = new Set<Entry>();
  #indexByKey: Map<string, number> | undefined;

  constructor({ entries, boundary }: Timeline) {
    this.#entries = entries.slice();
    this.current = boundary.current;
    this.firstRun = boundary.firstRun;
    this.unmatchedEnds = boundary.unmatchedEnds;
    this.ended = new Map(boundary.ended);
    this.resolved = new Map(boundary.resolved);
    this.settled = new Map(boundary.settled);
    this.rewritten = new Map(boundary.rewritten);
  }

  /** The result. The builder must not be used afterwards. */
  build(): Pick<Timeline, 'entries' | 'boundary'> {
    const { current, firstRun, unmatchedEnds, ended, resolved, settled, rewritten } = this;
    return { entries: this.#entries, boundary: { current, firstRun, unmatchedEnds, ended, resolved, settled, rewritten } };
  }

  /** Whether a run has ended. Later events of it are ignored. */
  hasEnded(taskId: string | undefined): boolean {
    return taskId !== undefined && this.ended.has(taskId);
  }

  setCurrentRun(taskId: string): void {
    this.current = taskId;
  }

  find(key: string): Entry | undefined {
    const index = this.#indexOf(key);
    return index === undefined ? undefined : this.#entries[index];
  }

  append(entry: Entry): void {
    this.#indexByKey?.set(entry.key, this.#entries.length);
    this.#entries.push(entry);
    this.#ownEntries.add(entry);
  }

  /** An entry of this kind, copied if necessary so that it may be changed. */
  editable<K extends Kind>(key: string, kind: K): Mutable<Of<K>> | undefined {
    const index = this.#indexOf(key);
    const entry = index === undefined ? undefined : this.#entries[index];
    if (index === undefined || entry?.kind !== kind) return undefined;
    if (this.#ownEntries.has(entry)) return entry as Of<K>;
    const copy = { ...entry } as Of<K>;
    this.#entries[index] = copy;
    this.#ownEntries.add(copy);
    return copy;
  }

  /** Replaces every entry for which `changed` returns another one. */
  replaceAll(changed: (entry: Entry) => Entry): void {
    this.#entries.forEach((entry, index) => {
      const after = changed(entry);
      if (after === entry) return;
      this.#entries[index] = after;
      this.#ownEntries.add(after);
    });
  }

  #indexOf(key: string): number | undefined {
    if (!this.#indexByKey) {
      const last = this.#entries.length - 1;
      for (let index = last; index >= 0 && index > last - RECENT_ENTRIES; index -= 1) {
        if (this.#entries[index]?.key === key) return index;
      }
      this.#indexByKey = new Map(this.#entries.map((entry, index) => [entry.key, index]));
    }
    return this.#indexByKey.get(key);
  }
}
