// Sessions section: all sessions, without titles or messages.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../auth';
import { RelativeTime } from '../components/relative-time';
import { showToast } from '../components/toast';
import { hrefOf } from '../route';
import { text } from '../text';
import { AdminConfirmDialog } from './admin-confirm-dialog';
import { ChoiceFilter, Filters, TextFilter } from './filter-fields';
import { ALL_CONNECTIONS, connectionFilter, sessionFilter } from './filter-state';
import { restoreFocus } from './restore-focus';
import { PagedTable, ShortId } from './table';
import type { Column } from './table';
import { useList, useLoad, withQuery } from './use-load';
import type { Page } from './use-load';

const strings = text.admin.sessions;
const PAGE_SIZE = { size: 50, maxPerRequest: 500, everyMs: 10_000 };

type Session = Http.AnySessionBody;

async function readPage(filter: typeof sessionFilter.value, from: string | number | undefined, limit: number): Promise<Page<Session>> {
  const { sessions, next } = await request<Http.AnySessionsBody>('GET', withQuery('/api/admin/sessions', { ...filter, before: from, limit }));
  return { items: sessions, next };
}

export function SessionsSection() {
  const filter = sessionFilter.value;
  const list = useList((from, limit) => readPage(filter, from, limit), JSON.stringify(filter), PAGE_SIZE);
  const [ending, setEnding] = useState<Session>();
  const endSession = async ({ id, owner }: Session) => {
    await request('DELETE', `/api/admin/sessions/${id}`);
    setEnding(undefined);
    showToast(strings.done(owner.username));
    await list.reload();
    restoreFocus();
  };
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.sessions}</h2>
      <p class="soft small">{strings.private}</p>
      <SessionFilters />
      <PagedTable list={list} caption={strings.caption} columns={[...COLUMNS, actionsColumn(setEnding)]} empty={strings.empty} keyOf={({ id }) => id} rowAttributes={({ id, status }) => ({ 'data-session': id, 'data-status': status })} />
      {ending && (
        <AdminConfirmDialog title={strings.title(ending.owner.username)} label={strings.do} onConfirm={() => endSession(ending)} onClose={() => setEnding(undefined)}>
          <p>{strings.what(ending.owner.username)}</p>
          <p class="soft small mono">{ending.id}</p>
        </AdminConfirmDialog>
      )}
    </>
  );
}

function SessionFilters() {
  const filter = sessionFilter.value;
  const agents = useLoad(() => request<Http.ConfiguredAgentsBody>('GET', '/api/admin/agents')).data?.agents ?? [];
  // A session may use an agent that is no longer configured.
  const names = [...new Set([...agents.map(({ name }) => name), ...(filter.agent ? [filter.agent] : [])])];
  const setFilter = (change: Partial<typeof filter>) => (sessionFilter.value = { ...sessionFilter.value, ...change });
  return (
    <Filters label={text.admin.table.filter}>
      <TextFilter name="user" label={strings.owner} hint={text.admin.table.whole} value={filter.user} onChange={(user) => setFilter({ user })} />
      <ChoiceFilter name="agent" label={strings.agent} value={filter.agent} onChange={(agent) => setFilter({ agent })}>
        <option value="">{text.admin.table.any}</option>
        {names.map((name) => (
          <option key={name} value={name}>{name}</option>
        ))}
      </ChoiceFilter>
      <ChoiceFilter name="status" label={strings.status} value={filter.status} onChange={(status) => setFilter({ status })}>
        <option value="">{text.admin.table.any}</option>
        {text.admin.statuses.map((status) => (
          <option key={status} value={status}>{text.admin.status(status)}</option>
        ))}
      </ChoiceFilter>
    </Filters>
  );
}

const COLUMNS: readonly Column<Session>[] = [
  {
    label: strings.owner,
    show: ({ id, owner }) => (
      <>
        {owner.username} <ShortId id={id} />
      </>
    ),
  },
  { label: strings.agent, show: ({ agent }) => agent },
  { label: strings.status, show: ({ status }) => <span class={`badge ${status === 'running' ? 'good' : ''}`}>{text.admin.status(status)}</span> },
  { label: strings.messages, kind: 'number', show: ({ messageCount }) => text.admin.number(messageCount) },
  { label: strings.connections, kind: 'number', show: (session) => <ConnectionCount session={session} /> },
  { label: strings.created, show: ({ createdAt }) => <RelativeTime at={createdAt} /> },
  { label: strings.updated, show: ({ updatedAt }) => <RelativeTime at={updatedAt} /> },
];

/** The number of connections, as a link to them. */
function ConnectionCount({ session: { id, connections } }: { session: Session }) {
  if (connections === 0) return <>{text.admin.number(0)}</>;
  const filterConnections = () => (connectionFilter.value = { ...ALL_CONNECTIONS, session: id });
  return (
    <a href={hrefOf({ page: 'admin', section: 'connections' })} onClick={filterConnections}>
      {text.admin.number(connections)}
    </a>
  );
}

const actionsColumn = (onEnd: (session: Session) => void): Column<Session> => ({
  label: text.admin.table.actions,
  kind: 'actions',
  show: (session) => (
    <button type="button" class="button danger small" aria-label={strings.endOf(session.owner.username)} onClick={() => onEnd(session)} data-part="end-session">
      {strings.end}
    </button>
  ),
});
