// One session in the list.
import { useRef } from 'preact/hooks';
import { When } from '../parts/when';
import { address } from '../place';
import { text } from '../text';
import type { Row as Session } from './list';
import { SessionMenu } from './menu';
import { nameOf } from './naming';
import { isRenamed, Rename, rename } from './rename';

export function Row({ row, isCurrent }: { row: Session; isCurrent: boolean }) {
  const link = useRef<HTMLAnchorElement>(null);
  // The field is gone; its place has the focus.
  const renamed = () => requestAnimationFrame(() => link.current?.focus());
  return (
    <li class="row" data-session={row.id} data-status={row.status}>
      {isRenamed(row.id, 'list') ? (
        <Rename row={row} onDone={renamed} />
      ) : (
        <a ref={link} class="row-link" href={address({ page: 'session', id: row.id })} aria-current={isCurrent ? 'page' : undefined}>
          <span class="row-title">{nameOf(row)}</span>
          <Facts row={row} />
          {row.snippet && <span class="row-snippet">{row.snippet}</span>}
        </a>
      )}
      <SessionMenu row={row} onRename={() => rename(row, 'list')} />
    </li>
  );
}

function Facts({ row }: { row: Session }) {
  return (
    <span class="row-facts">
      <Status row={row} />
      <span>{row.agent}</span>
      <When at={row.updatedAt} />
      {row.queuedPrompts > 0 && <span>{text.sessions.queued(row.queuedPrompts)}</span>}
      {row.access !== 'owner' && <span>{text.sessions.sharedBy(row.owner)}</span>}
    </span>
  );
}

/** A mark, and the same in words. */
function Status({ row }: { row: Session }) {
  const words = row.status === 'waiting' && row.openQuestions > 0 ? text.sessions.questions(row.openQuestions) : text.sessions.status[row.status];
  return (
    <span class={`row-status ${row.status}`}>
      <span class="mark" aria-hidden="true" />
      {words ?? row.status}
    </span>
  );
}
