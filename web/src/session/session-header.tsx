// Session header: title, members, connection and menu of a session.
import { useRef } from 'preact/hooks';
import { currentUser } from '../auth';
import { Icon } from '../components/icon';
import { isRenaming, RenameField, startRename } from '../sessions/rename-field';
import { sessionList } from '../sessions/session-list';
import type { Row } from '../sessions/session-list';
import { SessionMenu } from '../sessions/session-menu';
import { SessionTags } from '../sessions/session-row';
import { sessionName } from '../sessions/session-name';
import { text } from '../text';
import { ConnectionBadge } from './connection-badge';
import { Control } from './control';
import type { OpenSession } from './open-session';
import { TokenUsage } from './transcript/token-usage';

export function SessionHeader({ session }: { session: OpenSession }) {
  const row = sessionList.row(session.id);
  return (
    <>
      <div class="head">
        <Title session={session} row={row} />
        <div class="head-facts">
          <ConnectionBadge session={session} />
          <span class="head-agent" title={text.sessions.agent(session.agent.value)}>{session.agent.value || row?.agent}</span>
          {row && <SessionTags row={row} />}
          <Presence session={session} />
          <TokenUsage session={session} />
        </div>
        <Control session={session} row={row} />
      </div>
      <div class="head-side">
        {row && <SessionMenu row={row} onRename={() => startRename(row, 'head')} />}
      </div>
    </>
  );
}

function Title({ session, row }: { session: OpenSession; row: Row | undefined }) {
  const button = useRef<HTMLButtonElement>(null);
  const name = row ? sessionName(row) : (session.view.value.title ?? text.sessions.untitled);
  const done = () => requestAnimationFrame(() => button.current?.focus());
  if (row && isRenaming(row.id, 'head')) return <RenameField row={row} onDone={done} />;
  return (
    <h1 class="head-title" title={name}>
      {row?.access === 'owner' ? (
        <button ref={button} type="button" data-part="title" title={text.sessions.renameThis} onClick={() => startRename(row, 'head')}>
          {name}
        </button>
      ) : (
        <span data-part="title">{name}</span>
      )}
    </h1>
  );
}

/** The other connected members. */
function Presence({ session }: { session: OpenSession }) {
  const me = currentUser()?.id;
  const others = session.view.value.presence.filter((member) => member.userId !== me).map((member) => member.username);
  if (others.length === 0) return null;
  return (
    <span class="present" data-part="presence" role="status" title={text.sessions.here(others)}>
      <Icon name="person" />
      <span class="present-names">{text.sessions.here(others)}</span>
      <span class="present-count" aria-hidden="true">{others.length}</span>
    </span>
  );
}
