// What is being asked about a session, above the page.
//
// Not inside its row: a row moves when the session's state changes, and what was typed would be lost.
import { signal } from '@preact/signals';
import { Share } from '../session/share';
import { Delete } from './delete';
import type { Row } from './list';

/** The dialog that is open. */
export const asked = signal<{ what: 'share' | 'delete'; row: Row } | undefined>(undefined);

/** Where it is shown. Once in the page. */
export function Asked() {
  const now = asked.value;
  const close = () => (asked.value = undefined);
  if (now?.what === 'share') return <Share row={now.row} onClose={close} />;
  if (now?.what === 'delete') return <Delete row={now.row} onClose={close} />;
  return null;
}
