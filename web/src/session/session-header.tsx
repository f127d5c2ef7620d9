// The head of a session: what it is called, who is in it, and how the line to it is.
import { useRef } from 'preact/hooks';
import { standing } from '../account';
import { Icon } from '../parts/icon';
import { list } from '../sessions/list';
import type { Row } from '../sessions/list';
import { SessionMenu } from '../sessions/menu';
import { nameOf } from '../sessions/naming';
import { isRenamed, Rename, rename } from '../sessions/rename';
import { text } from '../text';
import { ConnectionBadge } from './connection';
import { Control } from './control';
import type { OpenSession } from './open';
import { Usage } from './transcript/usage';

export function SessionHeader({ session }: { session: OpenSession }) {
  const row = list.row(session.id);
  return (
    <>
      <div class="head">
        <Title session={session} row={row} />
        <div class="head-facts">
          <ConnectionBadge session={session} />
          <span class="head-agent" title={text.sessions.agent(session.agent.value)}>{session.agent.value || row?.agent}</span>
          {row && text.sessions.access[row.access] && <span>{text.sessions.access[row.access]}</span>}
          <Present session={session} />
          <Control session={session} row={row} />
        </div>
      </div>
      <div class="head-side">
        <Usage session={session} />
        {row && <SessionMenu row={row} onRename={() => rename(row, 'head')} />}
      </div>
    </>
  );
}

function Title({ session, row }: { session: OpenSession; row: Row | undefined }) {
  const button = useRef<HTMLButtonElement>(null);
  const name = row ? nameOf(row) : (session.view.value.title ?? text.sessions.untitled);
  const done = () => requestAnimationFrame(() => button.current?.focus());
  if (row && isRenamed(row.id, 'head')) return <Rename row={row} onDone={done} />;
  return (
    <h1 class="head-title" title={name}>
      {row?.access === 'owner' ? (
        <button ref={button} type="button" data-part="title" title={text.sessions.renameThis} onClick={() => rename(row, 'head')}>
          {name}
        </button>
      ) : (
        <span data-part="title">{name}</span>
      )}
    </h1>
  );
}

/** Who else is here. */
function Present({ session }: { session: OpenSession }) {
  const now = standing.value;
  const me = now.is === 'in' ? now.user.id : '';
  const others = session.view.value.presence.filter((member) => member.userId !== me).map((member) => member.username);
  if (others.length === 0) return null;
  return (
    <span class="present" data-part="presence" role="status">
      <Icon name="person" />
      {text.sessions.here(others)}
    </span>
  );
}
