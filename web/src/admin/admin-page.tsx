// Admin page: the sections of the administration and their menu.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { currentUser } from '../auth';
import { ADMIN_SECTIONS, hrefOf, route } from '../route';
import type { AdminSection } from '../route';
import { text } from '../text';
import { AgentsSection } from './agents';
import { AuditSection } from './audit';
import { ConnectionsSection } from './connections';
import { OverviewSection } from './overview';
import { restoreFocus } from './restore-focus';
import { NoticeSection } from './send-notice';
import { SessionsSection } from './sessions';
import { UsersSection } from './users';

const strings = text.admin;

const SECTIONS: Record<AdminSection, () => ComponentChildren> = {
  overview: () => <OverviewSection />,
  users: () => <UsersSection />,
  connections: () => <ConnectionsSection />,
  sessions: () => <SessionsSection />,
  agents: () => <AgentsSection />,
  audit: () => <AuditSection />,
  notice: () => <NoticeSection />,
};

/** Shows the section of the route, for administrators. The gateway checks the role on every request. */
export function AdminPage() {
  const section = route.value.page === 'admin' ? route.value.section : 'overview';
  const isAllowed = currentUser()?.role === 'admin';
  // The link that led here was removed with its section.
  useEffect(restoreFocus, [section]);
  return (
    <section class="admin" data-part="admin" aria-label={strings.title}>
      <div class="admin-content">
        <h1>{strings.title}</h1>
        {isAllowed ? (
          <>
            <SectionNav current={section} />
            <div key={section}>{SECTIONS[section]()}</div>
          </>
        ) : (
          <p role="alert">{strings.onlyAdmins}</p>
        )}
      </div>
    </section>
  );
}

function SectionNav({ current }: { current: AdminSection }) {
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return (
    <nav ref={list} class="admin-parts" aria-label={strings.parts}>
      {ADMIN_SECTIONS.map((section) => (
        <a key={section} href={hrefOf({ page: 'admin', section })} aria-current={section === current ? 'page' : undefined}>
          {strings.part[section]}
        </a>
      ))}
    </nav>
  );
}
