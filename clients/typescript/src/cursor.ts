// Cursor: how far a session's journal was read.
import type { SessionEvent } from './envelope.js';

/** A position in a journal. Every event up to it was received. */
export interface Cursor {
  epoch: string;
  offset: number;
}

/** How an event relates to a cursor. */
export type EventOrder = 'next' | 'duplicate' | 'gap';

/** Whether an event follows the cursor. Merged chunks count from the first offset they cover. */
export function eventOrder(cursor: Cursor, event: SessionEvent): EventOrder {
  if (event.offset <= cursor.offset) return 'duplicate';
  const first = event.type === 'TASK_OUTPUT_CHUNK' ? event.payload.fromOffset ?? event.offset : event.offset;
  return first === cursor.offset + 1 ? 'next' : 'gap';
}
