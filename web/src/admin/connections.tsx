// Who is connected now.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../account';
import { say } from '../parts/toast';
import { When } from '../parts/when';
import { text } from '../text';
import { Confirm, keepFocus } from './confirm';
import { Filters, TextFilter } from './filters';
import { ask, useList } from './load';
import type { Page } from './load';
import { connectionFilter } from './narrowed';
import { Id, List } from './table';
import type { Column } from './table';

const words = text.admin.connections;
const PACE = { size: 100, most: 1_000, everyMs: 5_000 };

type Connection = Http.ConnectionBody;

async function read(filter: typeof connectionFilter.value, from: string | number | undefined, limit: number): Promise<Page<Connection>> {
  const path = ask('/api/admin/connections', { ...filter, after: from, limit });
  const { connections, next } = await request<Http.ConnectionsBody>('GET', path);
  return { items: connections, next };
}

export function ConnectionsPart() {
  const filter = connectionFilter.value;
  const list = useList((from, limit) => read(filter, from, limit), JSON.stringify(filter), PACE);
  const [asked, setAsked] = useState<Connection>();
  const narrow = (change: Partial<typeof filter>) => (connectionFilter.value = { ...connectionFilter.value, ...change });
  const disconnect = async ({ id, username }: Connection) => {
    await request('DELETE', `/api/admin/connections/${id}`);
    setAsked(undefined);
    say(words.done(username));
    await list.reload();
    keepFocus();
  };
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.connections}</h2>
      <p class="soft small">{words.auto}</p>
      <Filters label={text.admin.table.filter}>
        <TextFilter name="user" label={words.user} hint={text.admin.table.whole} value={filter.user} onChange={(user) => narrow({ user })} />
        {filter.session && <TextFilter name="session" label={words.session} value={filter.session} onChange={(session) => narrow({ session })} />}
      </Filters>
      <List list={list} caption={words.caption} columns={[...COLUMNS, leave(setAsked)]} empty={filter.user ? words.emptyOf(filter.user) : words.empty} keyOf={({ id }) => id} mark={({ id }) => ({ 'data-connection': id })} />
      {asked && (
        <Confirm title={words.title(asked.username)} action={words.disconnect} isHarmless onDo={() => disconnect(asked)} onClose={() => setAsked(undefined)}>
          <p>{words.what}</p>
        </Confirm>
      )}
    </>
  );
}

const COLUMNS: readonly Column<Connection>[] = [
  { label: words.user, show: ({ username }) => username },
  { label: words.session, show: ({ sessionId }) => <Id id={sessionId} /> },
  { label: words.address, kind: 'long', show: ({ address }) => <span class="mono">{address}</span> },
  { label: words.since, show: ({ since }) => <When at={since} /> },
];

const leave = (onAsk: (connection: Connection) => void): Column<Connection> => ({
  label: text.admin.table.actions,
  kind: 'actions',
  show: (connection) => (
    <button type="button" class="button quiet small" aria-label={words.disconnectOf(connection.username)} onClick={() => onAsk(connection)} data-part="disconnect">
      {words.disconnect}
    </button>
  ),
});
