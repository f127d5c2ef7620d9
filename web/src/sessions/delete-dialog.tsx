// Delete dialog: confirms the deletion of a session.
import { ConfirmDialog } from '../components/confirm-dialog';
import { text } from '../text';
import { deleteSession } from './session-actions';
import type { Row } from './session-list';
import { sessionName } from './session-name';

export function DeleteDialog({ row, onClose }: { row: Row; onClose: () => void }) {
  return (
    <ConfirmDialog title={text.sessions.removeTitle} label={text.sessions.removeYes} busyLabel={text.sessions.removing} onClose={onClose} action={() => deleteSession(row)}>
      <p>
        <strong>{sessionName(row)}</strong>
      </p>
      <p>{text.sessions.removeWords(row.messageCount)}</p>
      {row.status === 'running' || row.status === 'waiting' ? <p>{text.sessions.removeRunning}</p> : null}
    </ConfirmDialog>
  );
}
