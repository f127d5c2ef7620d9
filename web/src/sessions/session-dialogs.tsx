// Session dialogs: sharing and deleting a session.
//
// Rendered outside of the rows: a row moves when its session changes, and what was typed would be lost.
import { signal } from '@preact/signals';
import { DeleteDialog } from './delete-dialog';
import type { Row } from './session-list';
import { ShareDialog } from './share-dialog';

export const openDialog = signal<{ kind: 'share' | 'delete'; row: Row } | undefined>(undefined);

/** Renders the open dialog. Mount once. */
export function SessionDialogs() {
  const open = openDialog.value;
  const close = () => (openDialog.value = undefined);
  if (open?.kind === 'share') return <ShareDialog row={open.row} onClose={close} />;
  if (open?.kind === 'delete') return <DeleteDialog row={open.row} onClose={close} />;
  return null;
}
