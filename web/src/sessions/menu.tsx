// What can be done with a session, behind its button with the dots.
import { explain } from '../account';
import { Icon } from '../parts/icon';
import { Menu, MenuItem } from '../parts/menu';
import { say } from '../parts/toast';
import { text } from '../text';
import { change, save } from './acts';
import type { Format } from './acts';
import { asked } from './asked';
import type { Row } from './list';
import { nameOf } from './naming';

/** `onRename`: shows the title as something that can be changed. */
export function SessionMenu({ row, onRename }: { row: Row; onRename: () => void }) {
  const isOwner = row.access === 'owner';
  const isArchived = row.status === 'archived';
  return (
    <Menu button={<Icon name="dots" />} label={text.sessions.menuOf(nameOf(row))} part="session-menu">
      {(close) => {
        const act = (task: () => Promise<void> | void) => () => {
          close();
          void tried(task);
        };
        return (
          <>
            {isOwner && <MenuItem part="rename" onChoose={act(onRename)}>{text.sessions.rename}</MenuItem>}
            {isOwner && (
              <MenuItem part="archive" onChoose={act(() => change(row, { archived: !isArchived }))}>
                {isArchived ? text.sessions.bringBack : text.sessions.archive}
              </MenuItem>
            )}
            {isOwner && <MenuItem part="share" onChoose={act(() => ask(row, 'share'))}>{text.sessions.share}</MenuItem>}
            {isOwner && <ControlItem row={row} act={act} />}
            <MenuItem part="export-markdown" onChoose={act(() => exported(row, 'markdown'))}>{text.sessions.exportMarkdown}</MenuItem>
            <MenuItem part="export-ndjson" onChoose={act(() => exported(row, 'ndjson'))}>{text.sessions.exportNdjson}</MenuItem>
            {isOwner && <MenuItem part="delete" isDangerous onChoose={act(() => ask(row, 'delete'))}>{text.sessions.remove}</MenuItem>}
          </>
        );
      }}
    </Menu>
  );
}

function ask(row: Row, what: 'share' | 'delete'): void {
  asked.value = { what, row };
}

/** Whether everybody may drive, or one at a time. */
function ControlItem({ row, act }: { row: Row; act: (task: () => Promise<void>) => () => void }) {
  const isExclusive = row.control === 'exclusive';
  const choose = act(() => change(row, { control: isExclusive ? 'open' : 'exclusive' }));
  return <MenuItem part="control-mode" onChoose={choose}>{isExclusive ? text.sessions.letAllDrive : text.sessions.letOneDrive}</MenuItem>;
}

async function exported(row: Row, format: Format): Promise<void> {
  say(text.sessions.exporting);
  await save(row, format);
}

async function tried(task: () => Promise<void> | void): Promise<void> {
  try {
    await task();
  } catch (error) {
    say(explain(error), 'error');
  }
}
