// Connections section: the open connections.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../auth';
import { RelativeTime } from '../components/relative-time';
import { showToast } from '../components/toast';
import { text } from '../text';
import { AdminConfirmDialog } from './admin-confirm-dialog';
import { Filters, TextFilter } from './filter-fields';
import { connectionFilter } from './filter-state';
import { restoreFocus } from './restore-focus';
import { PagedTable, ShortId } from './table';
import type { Column } from './table';
import { useList, withQuery } from './use-load';
import type { Page } from './use-load';

const strings = text.admin.connections;
const PAGE_SIZE = { size: 100, maxPerRequest: 1_000, everyMs: 5_000 };

type Connection = Http.ConnectionBody;

async function readPage(filter: typeof connectionFilter.value, from: string | number | undefined, limit: number): Promise<Page<Connection>> {
  const path = withQuery('/api/admin/connections', { ...filter, after: from, limit });
  const { connections, next } = await request<Http.ConnectionsBody>('GET', path);
  return { items: connections, next };
}

export function ConnectionsSection() {
  const filter = connectionFilter.value;
  const list = useList((from, limit) => readPage(filter, from, limit), JSON.stringify(filter), PAGE_SIZE);
  const [disconnecting, setDisconnecting] = useState<Connection>();
  const setFilter = (change: Partial<typeof filter>) => (connectionFilter.value = { ...connectionFilter.value, ...change });
  const disconnect = async ({ id, username }: Connection) => {
    await request('DELETE', `/api/admin/connections/${id}`);
    setDisconnecting(undefined);
    showToast(strings.done(username));
    await list.reload();
    restoreFocus();
  };
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.connections}</h2>
      <p class="soft small">{strings.auto}</p>
      <Filters label={text.admin.table.filter}>
        <TextFilter name="user" label={strings.user} hint={text.admin.table.whole} value={filter.user} onChange={(user) => setFilter({ user })} />
        {filter.session && <TextFilter name="session" label={strings.session} value={filter.session} onChange={(session) => setFilter({ session })} />}
      </Filters>
      <PagedTable list={list} caption={strings.caption} columns={[...COLUMNS, actionsColumn(setDisconnecting)]} empty={filter.user ? strings.emptyOf(filter.user) : strings.empty} keyOf={({ id }) => id} rowAttributes={({ id }) => ({ 'data-connection': id })} />
      {disconnecting && (
        <AdminConfirmDialog title={strings.title(disconnecting.username)} label={strings.disconnect} isHarmless onConfirm={() => disconnect(disconnecting)} onClose={() => setDisconnecting(undefined)}>
          <p>{strings.what}</p>
        </AdminConfirmDialog>
      )}
    </>
  );
}

const COLUMNS: readonly Column<Connection>[] = [
  { label: strings.user, show: ({ username }) => username },
  { label: strings.session, show: ({ sessionId }) => <ShortId id={sessionId} /> },
  { label: strings.address, kind: 'long', show: ({ address }) => <span class="mono">{address}</span> },
  { label: strings.since, show: ({ since }) => <RelativeTime at={since} /> },
];

const actionsColumn = (onDisconnect: (connection: Connection) => void): Column<Connection> => ({
  label: text.admin.table.actions,
  kind: 'actions',
  show: (connection) => (
    <button type="button" class="button quiet small" aria-label={strings.disconnectOf(connection.username)} onClick={() => onDisconnect(connection)} data-part="disconnect">
      {strings.disconnect}
    </button>
  ),
});
