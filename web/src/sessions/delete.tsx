// The question before a session is ended for good.
import { Confirm } from '../parts/confirm';
import { text } from '../text';
import { remove } from './acts';
import type { Row } from './list';
import { nameOf } from './naming';

export function Delete({ row, onClose }: { row: Row; onClose: () => void }) {
  return (
    <Confirm title={text.sessions.removeTitle} label={text.sessions.removeYes} busyLabel={text.sessions.removing} onClose={onClose} action={() => remove(row)}>
      <p>
        <strong>{nameOf(row)}</strong>
      </p>
      <p>{text.sessions.removeWords(row.messageCount)}</p>
      {row.status === 'running' || row.status === 'waiting' ? <p>{text.sessions.removeRunning}</p> : null}
    </Confirm>
  );
}
