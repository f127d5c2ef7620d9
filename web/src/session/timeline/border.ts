// What a part of a conversation knows about the part before it, which may still have to be loaded: so that
// both can be put together as if they had been read at once.
import type { Protocol } from '@switchboard/client';
import type { EndEntry } from '../timeline';

/** Says nothing about entries of its own, but of those that began earlier. */
export interface Border {
  /** The run under way after the last event; `null` if there is none, `undefined` if nothing tells. */
  readonly current: string | null | undefined;
  /** The first run that began here, if nothing told what was under way until then. */
  readonly opening: { readonly taskId: string; readonly offset: number } | undefined;
  /** Runs that ended here, and with which event. */
  readonly ended: ReadonlyMap<string, number>;
  /** Ends of what either began earlier or waited in the queue and never began. */
  readonly looseEnds: readonly EndEntry[];
  /** How questions ended that were asked earlier. */
  readonly resolved: ReadonlyMap<string, { readonly resolved: Protocol.Resolved; readonly offset: number; readonly at: string }>;
  /** Texts that were only completed here, by the key of their entry. */
  readonly settled: ReadonlyMap<string, number>;
  /** Answers whose text does not go on from what was said earlier. */
  readonly renewed: ReadonlyMap<string, Renewal>;
}

/** `withdrawn` leaves alone what was complete before, `replaced` does not. */
export type Renewal = 'withdrawn' | 'replaced';

/** Nothing is known. */
export function openBorder(): Border {
  return { current: undefined, opening: undefined, ended: new Map(), looseEnds: [], resolved: new Map(), settled: new Map(), renewed: new Map() };
}
