// Session row: one session in the list.
import { useRef } from 'preact/hooks';
import { RelativeTime } from '../components/relative-time';
import { hrefOf } from '../route';
import { text } from '../text';
import { isRenaming, RenameField, startRename } from './rename-field';
import type { Row as Session } from './session-list';
import { SessionMenu } from './session-menu';
import { sessionName } from './session-name';

export function SessionRow({ row, isCurrent }: { row: Session; isCurrent: boolean }) {
  const link = useRef<HTMLAnchorElement>(null);
  // The rename field is gone; focus the link in its place.
  const focusLink = () => requestAnimationFrame(() => link.current?.focus());
  return (
    <li class="row" data-session={row.id} data-status={row.status}>
      {isRenaming(row.id, 'list') ? (
        <RenameField row={row} onDone={focusLink} />
      ) : (
        <a ref={link} class="row-link" href={hrefOf({ page: 'session', id: row.id })} aria-current={isCurrent ? 'page' : undefined}>
          <span class="row-title">{sessionName(row)}</span>
          <RowFacts row={row} />
          {row.snippet && <span class="row-snippet">{row.snippet}</span>}
        </a>
      )}
      <SessionMenu row={row} onRename={() => startRename(row, 'list')} />
    </li>
  );
}

function RowFacts({ row }: { row: Session }) {
  return (
    <span class="row-facts">
      <Status row={row} />
      <span>{row.agent}</span>
      <RelativeTime at={row.updatedAt} />
      {row.queuedPrompts > 0 && <span>{text.sessions.queued(row.queuedPrompts)}</span>}
      {row.access !== 'owner' && <span>{text.sessions.sharedBy(row.owner)}</span>}
    </span>
  );
}

/** A coloured mark, and the same as text. */
function Status({ row }: { row: Session }) {
  const status = row.status === 'waiting' && row.openQuestions > 0 ? text.sessions.questions(row.openQuestions) : text.sessions.status[row.status];
  return (
    <span class={`row-status ${row.status}`}>
      <span class="mark" aria-hidden="true" />
      {status ?? row.status}
    </span>
  );
}
