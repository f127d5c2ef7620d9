// The administration: who may come, who is here, and what was done.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { standing } from '../account';
import { ADMIN_PARTS, address, place } from '../place';
import type { AdminPart } from '../place';
import { text } from '../text';
import { AgentsPart } from './agents';
import { AuditPart } from './audit';
import { keepFocus } from './confirm';
import { ConnectionsPart } from './connections';
import { NoticePart } from './notice';
import { OverviewPart } from './overview';
import { SessionsPart } from './sessions';
import { UsersPart } from './users';

const words = text.admin;

const PARTS: Record<AdminPart, () => ComponentChildren> = {
  overview: () => <OverviewPart />,
  users: () => <UsersPart />,
  connections: () => <ConnectionsPart />,
  sessions: () => <SessionsPart />,
  agents: () => <AgentsPart />,
  audit: () => <AuditPart />,
  notice: () => <NoticePart />,
};

/** The part that `place` says, for administrators. The gateway asks again with every request. */
export function AdminPage() {
  const now = standing.value;
  const part = place.value.page === 'admin' ? place.value.part : 'overview';
  const isAllowed = now.is === 'in' && now.user.role === 'admin';
  // A link from one part into another is gone with the part it stood in.
  useEffect(keepFocus, [part]);
  return (
    <section class="admin" data-part="admin" aria-label={words.title}>
      <div class="admin-room">
        <h1>{words.title}</h1>
        {isAllowed ? (
          <>
            <Parts now={part} />
            <div key={part}>{PARTS[part]()}</div>
          </>
        ) : (
          <p role="alert">{words.onlyAdmins}</p>
        )}
      </div>
    </section>
  );
}

function Parts({ now }: { now: AdminPart }) {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [now]);
  return (
    <nav ref={list} class="admin-parts" aria-label={words.parts}>
      {ADMIN_PARTS.map((part) => (
        <a key={part} href={address({ page: 'admin', part })} aria-current={part === now ? 'page' : undefined}>
          {words.part[part]}
        </a>
      ))}
    </nav>
  );
}
