// How far a session's journal was read.
import type { SessionEvent } from './envelope.js';

/** A place in a journal: of everything up to it nothing is missing. */
export interface Cursor {
  epoch: string;
  offset: number;
}

/** How an event stands to a cursor. */
export type Standing = 'next' | 'known' | 'gap';

/** Is this the event that follows? One that was joined from several counts from its first one. */
export function standing(cursor: Cursor, event: SessionEvent): Standing {
  if (event.offset <= cursor.offset) return 'known';
  const first = event.type === 'TASK_OUTPUT_CHUNK' ? event.payload.fromOffset ?? event.offset : event.offset;
  return first === cursor.offset + 1 ? 'next' : 'gap';
}
