// Which sessions there are. Never what they are called, or what is said in them.
import type { Http } from '@switchboard/client';
import { useState } from 'preact/hooks';
import { request } from '../account';
import { say } from '../parts/toast';
import { When } from '../parts/when';
import { address } from '../place';
import { text } from '../text';
import { Confirm, keepFocus } from './confirm';
import { ChoiceFilter, Filters, TextFilter } from './filters';
import { ask, useList, useLoad } from './load';
import type { Page } from './load';
import { EVERYBODY, connectionFilter, sessionFilter } from './narrowed';
import { Id, List } from './table';
import type { Column } from './table';

const words = text.admin.sessions;
const PACE = { size: 50, most: 500, everyMs: 10_000 };

type Session = Http.AnySessionBody;

async function read(filter: typeof sessionFilter.value, from: string | number | undefined, limit: number): Promise<Page<Session>> {
  const { sessions, next } = await request<Http.AnySessionsBody>('GET', ask('/api/admin/sessions', { ...filter, before: from, limit }));
  return { items: sessions, next };
}

export function SessionsPart() {
  const filter = sessionFilter.value;
  const list = useList((from, limit) => read(filter, from, limit), JSON.stringify(filter), PACE);
  const [asked, setAsked] = useState<Session>();
  const end = async ({ id, owner }: Session) => {
    await request('DELETE', `/api/admin/sessions/${id}`);
    setAsked(undefined);
    say(words.done(owner.username));
    await list.reload();
    keepFocus();
  };
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.sessions}</h2>
      <p class="soft small">{words.private}</p>
      <Narrow />
      <List list={list} caption={words.caption} columns={[...COLUMNS, ending(setAsked)]} empty={words.empty} keyOf={({ id }) => id} mark={({ id, status }) => ({ 'data-session': id, 'data-status': status })} />
      {asked && (
        <Confirm title={words.title(asked.owner.username)} action={words.do} onDo={() => end(asked)} onClose={() => setAsked(undefined)}>
          <p>{words.what(asked.owner.username)}</p>
          <p class="soft small mono">{asked.id}</p>
        </Confirm>
      )}
    </>
  );
}

function Narrow() {
  const filter = sessionFilter.value;
  const agents = useLoad(() => request<Http.ConfiguredAgentsBody>('GET', '/api/admin/agents')).data?.agents ?? [];
  // A session may have an agent that is not configured any more.
  const names = [...new Set([...agents.map(({ name }) => name), ...(filter.agent ? [filter.agent] : [])])];
  const narrow = (change: Partial<typeof filter>) => (sessionFilter.value = { ...sessionFilter.value, ...change });
  return (
    <Filters label={text.admin.table.filter}>
      <TextFilter name="user" label={words.owner} hint={text.admin.table.whole} value={filter.user} onChange={(user) => narrow({ user })} />
      <ChoiceFilter name="agent" label={words.agent} value={filter.agent} onChange={(agent) => narrow({ agent })}>
        <option value="">{text.admin.table.any}</option>
        {names.map((name) => (
          <option key={name} value={name}>{name}</option>
        ))}
      </ChoiceFilter>
      <ChoiceFilter name="status" label={words.status} value={filter.status} onChange={(status) => narrow({ status })}>
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
    label: words.owner,
    show: ({ id, owner }) => (
      <>
        {owner.username} <Id id={id} />
      </>
    ),
  },
  { label: words.agent, show: ({ agent }) => agent },
  { label: words.status, show: ({ status }) => <span class={`badge ${status === 'running' ? 'good' : ''}`}>{text.admin.status(status)}</span> },
  { label: words.messages, kind: 'number', show: ({ messageCount }) => text.admin.number(messageCount) },
  { label: words.connections, kind: 'number', show: (session) => <Here session={session} /> },
  { label: words.created, show: ({ createdAt }) => <When at={createdAt} /> },
  { label: words.updated, show: ({ updatedAt }) => <When at={updatedAt} /> },
];

/** How many are in it, and a way to see who. */
function Here({ session: { id, connections } }: { session: Session }) {
  if (connections === 0) return <>{text.admin.number(0)}</>;
  const narrow = () => (connectionFilter.value = { ...EVERYBODY, session: id });
  return (
    <a href={address({ page: 'admin', part: 'connections' })} onClick={narrow}>
      {text.admin.number(connections)}
    </a>
  );
}

const ending = (onAsk: (session: Session) => void): Column<Session> => ({
  label: text.admin.table.actions,
  kind: 'actions',
  show: (session) => (
    <button type="button" class="button danger small" aria-label={words.endOf(session.owner.username)} onClick={() => onAsk(session)} data-part="end-session">
      {words.end}
    </button>
  ),
});
