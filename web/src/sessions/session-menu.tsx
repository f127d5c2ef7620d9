// Session menu: the actions for one session.
import { explain } from '../auth';
import { Icon } from '../components/icon';
import { Menu, MenuItem } from '../components/menu';
import { showToast } from '../components/toast';
import { text } from '../text';
import { changeSession, exportSession } from './session-actions';
import type { Format } from './session-actions';
import { openDialog } from './session-dialogs';
import type { Row } from './session-list';
import { sessionName } from './session-name';

/** `onRename`: shows the rename field. */
export function SessionMenu({ row, onRename }: { row: Row; onRename: () => void }) {
  const isOwner = row.access === 'owner';
  const isArchived = row.status === 'archived';
  return (
    <Menu button={<Icon name="dots" />} label={text.sessions.menuOf(sessionName(row))} part="session-menu">
      {(close) => {
        const closeAndRun = (task: () => Promise<void> | void) => () => {
          close();
          void runWithToast(task);
        };
        return (
          <>
            {isOwner && <MenuItem part="rename" onChoose={closeAndRun(onRename)}>{text.sessions.rename}</MenuItem>}
            {isOwner && (
              <MenuItem part="archive" onChoose={closeAndRun(() => changeSession(row, { archived: !isArchived }))}>
                {isArchived ? text.sessions.bringBack : text.sessions.archive}
              </MenuItem>
            )}
            {isOwner && <MenuItem part="share" onChoose={closeAndRun(() => openSessionDialog(row, 'share'))}>{text.sessions.share}</MenuItem>}
            {isOwner && <ControlItem row={row} closeAndRun={closeAndRun} />}
            <MenuItem part="export-markdown" onChoose={closeAndRun(() => exportWithToast(row, 'markdown'))}>{text.sessions.exportMarkdown}</MenuItem>
            <MenuItem part="export-ndjson" onChoose={closeAndRun(() => exportWithToast(row, 'ndjson'))}>{text.sessions.exportNdjson}</MenuItem>
            {isOwner && <MenuItem part="delete" isDangerous onChoose={closeAndRun(() => openSessionDialog(row, 'delete'))}>{text.sessions.remove}</MenuItem>}
          </>
        );
      }}
    </Menu>
  );
}

function openSessionDialog(row: Row, kind: 'share' | 'delete'): void {
  openDialog.value = { kind, row };
}

/** Switches between control for everyone and for one member at a time. */
function ControlItem({ row, closeAndRun }: { row: Row; closeAndRun: (task: () => Promise<void>) => () => void }) {
  const isExclusive = row.control === 'exclusive';
  const choose = closeAndRun(() => changeSession(row, { control: isExclusive ? 'open' : 'exclusive' }));
  return <MenuItem part="control-mode" onChoose={choose}>{isExclusive ? text.sessions.letAllDrive : text.sessions.letOneDrive}</MenuItem>;
}

async function exportWithToast(row: Row, format: Format): Promise<void> {
  showToast(text.sessions.exporting);
  await exportSession(row, format);
}

async function runWithToast(task: () => Promise<void> | void): Promise<void> {
  try {
    await task();
  } catch (error) {
    showToast(explain(error), 'error');
  }
}
