// Boundary: what one page of the timeline knows about the page before it, so that pages can be joined as if
// they had been folded at once.
import type { Protocol } from '@switchboard/client';
import type { EndEntry } from '../timeline';

/** Describes only entries that began before the page. */
export interface Boundary {
  /** The current run after the last event; `null` if there is none, `undefined` if unknown. */
  readonly current: string | null | undefined;
  /** The first run that started on this page, if it was unknown which run was current before. */
  readonly firstRun: { readonly taskId: string; readonly offset: number } | undefined;
  /** Runs that ended here, with the offset of their end. */
  readonly ended: ReadonlyMap<string, number>;
  /** Ends of runs that either began earlier or were withdrawn from the queue. */
  readonly unmatchedEnds: readonly EndEntry[];
  /** Resolutions of questions that were asked earlier. */
  readonly resolved: ReadonlyMap<string, { readonly resolved: Protocol.Resolved; readonly offset: number; readonly at: string }>;
  /** Entries that were completed here, by key. */
  readonly settled: ReadonlyMap<string, number>;
  /** Answers whose text does not continue the earlier text. */
  readonly rewritten: ReadonlyMap<string, Rewrite>;
}

/** `withdrawn` leaves a completed text alone, `replaced` does not. */
export type Rewrite = 'withdrawn' | 'replaced';

export function unknownBoundary(): Boundary {
  return { current: undefined, firstRun: undefined, ended: new Map(), unmatchedEnds: [], resolved: new Map(), settled: new Map(), rewritten: new Map() };
}
