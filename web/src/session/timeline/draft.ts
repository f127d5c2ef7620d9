// A conversation while events are folded into it: copied once for all of them, and changed in place.
import type { Protocol } from '@switchboard/client';
import type { Entry, Timeline } from '../timeline';
import type { Border, Renewal } from './border';

type Kind = Entry['kind'];
type Of<K extends Kind> = Extract<Entry, { kind: K }>;
type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** So many of the newest entries are looked through before all of them are listed. */
const NEAR = 16;

export class Draft {
  current: Border['current'];
  opening: Border['opening'];
  looseEnds: Border['looseEnds'];
  readonly ended: Map<string, number>;
  readonly resolved: Map<string, { resolved: Protocol.Resolved; offset: number; at: string }>;
  readonly settled: Map<string, number>;
  readonly renewed: Map<string, Renewal>;
  readonly #entries: Entry[];
  /** Entries that only this draft has, and may therefore change. */
  readonly #own = new Set<Entry>();
  #places: Map<string, number> | undefined;

  constructor({ entries, border }: Timeline) {
    this.#entries = entries.slice();
    this.current = border.current;
    this.opening = border.opening;
    this.looseEnds = border.looseEnds;
    this.ended = new Map(border.ended);
    this.resolved = new Map(border.resolved);
    this.settled = new Map(border.settled);
    this.renewed = new Map(border.renewed);
  }

  /** What came out of it. The draft is not to be used afterwards. */
  done(): Pick<Timeline, 'entries' | 'border'> {
    const { current, opening, looseEnds, ended, resolved, settled, renewed } = this;
    return { entries: this.#entries, border: { current, opening, looseEnds, ended, resolved, settled, renewed } };
  }

  /** Has this run ended? Everything else about it is too late. */
  isOver(taskId: string | undefined): boolean {
    return taskId !== undefined && this.ended.has(taskId);
  }

  /** This run is under way. */
  live(taskId: string): void {
    this.current = taskId;
  }

  find(key: string): Entry | undefined {
    const place = this.#place(key);
    return place === undefined ? undefined : this.#entries[place];
  }

  put(entry: Entry): void {
    this.#places?.set(entry.key, this.#entries.length);
    this.#entries.push(entry);
    this.#own.add(entry);
  }

  /** An entry that may be changed, if it is there and of that kind. */
  change<K extends Kind>(key: string, kind: K): Mutable<Of<K>> | undefined {
    const place = this.#place(key);
    const known = place === undefined ? undefined : this.#entries[place];
    if (place === undefined || known?.kind !== kind) return undefined;
    if (this.#own.has(known)) return known as Of<K>;
    const copy = { ...known } as Of<K>;
    this.#entries[place] = copy;
    this.#own.add(copy);
    return copy;
  }

  /** Puts other entries in the place of those for which `changed` has one. */
  changeAll(changed: (entry: Entry) => Entry): void {
    this.#entries.forEach((entry, place) => {
      const after = changed(entry);
      if (after === entry) return;
      this.#entries[place] = after;
      this.#own.add(after);
    });
  }

  #place(key: string): number | undefined {
    if (!this.#places) {
      const last = this.#entries.length - 1;
      for (let place = last; place >= 0 && place > last - NEAR; place -= 1) {
        if (this.#entries[place]?.key === key) return place;
      }
      this.#places = new Map(this.#entries.map((entry, place) => [entry.key, place]));
    }
    return this.#places.get(key);
  }
}
