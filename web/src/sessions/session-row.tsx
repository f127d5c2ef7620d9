// Session row: one session in the list.
import { useRef } from 'preact/hooks';
import { RelativeTime } from '../components/relative-time';
import { hrefOf } from '../route';
import type { Route } from '../route';
import { text } from '../text';
import { isRenaming, RenameField, startRename } from './rename-field';
import type { Row as Session } from './session-list';
import { SessionMenu } from './session-menu';
import { sessionName } from './session-name';

/** `query`: what was searched for; the row then leads to its best passage. */
export function SessionRow({ row, isCurrent, query }: { row: Session; isCurrent: boolean; query?: string | undefined }) {
  const link = useRef<HTMLAnchorElement>(null);
  const [best, ...others] = (row.hits ?? []).filter(({ offset }) => offset > 0);
  // The rename field is gone; focus the link in its place.
  const focusLink = () => requestAnimationFrame(() => link.current?.focus());
  return (
    <li class="row" data-session={row.id} data-status={row.status}>
      {isRenaming(row.id, 'list') ? (
        <RenameField row={row} onDone={focusLink} />
      ) : (
        <a ref={link} class="row-link" href={hrefOf(hitRoute(row.id, best?.offset, query))} aria-current={isCurrent ? 'page' : undefined}>
          <span class="row-title">{row.unread && !isCurrent && <UnreadMark />}{sessionName(row)}</span>
          <RowFacts row={row} />
          {best && <span class="row-snippet"><MarkedText content={best.snippet} query={query} /></span>}
        </a>
      )}
      <SessionMenu row={row} onRename={() => startRename(row, 'list')} />
      {others.length > 0 && (
        <ul class="plain row-hits" aria-label={text.sessions.moreHits(sessionName(row))}>
          {others.map(({ offset, snippet }) => (
            <li key={offset}>
              <a class="row-snippet" data-part="hit" href={hrefOf(hitRoute(row.id, offset, query))}><MarkedText content={snippet} query={query} /></a>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function hitRoute(id: string, at: number | undefined, words: string | undefined): Route {
  return { page: 'session', id, ...(at === undefined ? {} : { at }), ...(words === undefined ? {} : { words }) };
}

/** A text with the words of the query marked. */
function MarkedText({ content, query = '' }: { content: string; query?: string | undefined }) {
  const words = query.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  if (words.length === 0) return <>{content}</>;
  const parts = content.split(new RegExp(`(${words.join('|')})`, 'giu'));
  return <>{parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part))}</>;
}

function UnreadMark() {
  return (
    <span class="unread-mark" data-part="unread">
      <span class="visually-hidden">{text.sessions.unread} </span>
    </span>
  );
}

function RowFacts({ row }: { row: Session }) {
  return (
    <span class="row-facts">
      <Status row={row} />
      <span>{row.agent}</span>
      <RelativeTime at={row.updatedAt} />
      {row.queuedPrompts > 0 && <span>{text.sessions.queued(row.queuedPrompts)}</span>}
      <SessionTags row={row} />
    </span>
  );
}

/** What kind of session it is: archived, a branch, shared. */
export function SessionTags({ row }: { row: Session }) {
  return (
    <>
      {row.status === 'archived' && <span data-tag="archived">{text.sessions.archivedTag}</span>}
      {row.branchedFrom && <span data-tag="branch">{text.sessions.branchTag}</span>}
      {row.access === 'owner' && row.sharedWith > 0 && <span data-tag="shared">{text.sessions.sharedWithCount(row.sharedWith)}</span>}
      {row.access !== 'owner' && <span data-tag="shared-by">{text.sessions.sharedBy(row.owner)}</span>}
      {text.sessions.access[row.access] && <span data-tag="access">{text.sessions.access[row.access]}</span>}
    </>
  );
}

/** A coloured mark, and the same as text. */
function Status({ row }: { row: Session }) {
  if (row.status === 'archived') return null;
  const status = row.status === 'waiting' && row.openQuestions > 0 ? text.sessions.questions(row.openQuestions) : text.sessions.status[row.status];
  return (
    <span class={`row-status ${row.status}`}>
      <span class="mark" aria-hidden="true" />
      {status ?? row.status}
    </span>
  );
}
