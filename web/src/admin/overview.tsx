// How the gateway is doing, in a few numbers.
import type { Http } from '@switchboard/client';
import { request } from '../account';
import { address } from '../place';
import type { AdminPart } from '../place';
import { text } from '../text';
import { Limits } from './limits';
import { useLoad } from './load';
import { EVERYBODY, NO_FILTER, connectionFilter, nameFilter, sessionFilter } from './narrowed';
import { Trouble } from './table';

const words = text.admin.overview;
const EVERY_MS = 5_000;
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

interface Numbers {
  overview: Http.OverviewBody;
  agents: readonly Http.ConfiguredAgentBody[];
}

async function read(): Promise<Numbers> {
  const [overview, { agents }] = await Promise.all([
    request<Http.OverviewBody>('GET', '/api/admin/overview'),
    request<Http.ConfiguredAgentsBody>('GET', '/api/admin/agents'),
  ]);
  return { overview, agents };
}

export function OverviewPart() {
  const numbers = useLoad(read, '', EVERY_MS);
  const { data, at, isLoading } = numbers;
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.overview}</h2>
      <Trouble of={numbers} />
      {data ? <Shown numbers={data} /> : isLoading && <p class="soft">{text.common.loading}</p>}
      {at !== undefined && <p class="soft small">{words.read(clock.format(at))}</p>}
      <Limits />
    </>
  );
}

function Shown({ numbers: { overview, agents } }: { numbers: Numbers }) {
  const live = agents.reduce((sum, agent) => sum + agent.live, 0);
  const crashes = agents.reduce((sum, agent) => sum + agent.crashes, 0);
  const { users, connections, sessions, runningRuns: runs } = overview;
  // A number counts all, so that its link leads to all.
  const all = () => {
    nameFilter.value = '';
    connectionFilter.value = EVERYBODY;
    sessionFilter.value = NO_FILTER;
  };
  const running = () => (sessionFilter.value = { ...NO_FILTER, status: 'running' });
  return (
    <>
      <ul class="plain admin-tiles" aria-label={words.numbers}>
        <Tile part="users" number={users} label={words.users(users)} onOpen={all} />
        <Tile part="connections" number={connections} label={words.connections(connections)} onOpen={all} />
        <Tile part="sessions" number={sessions} label={words.sessions(sessions)} more={words.awake(overview.awakeSessions)} onOpen={all} />
        <Tile part="sessions" number={runs} label={words.runs(runs)} onOpen={running} />
        <Tile part="agents" number={live} label={words.agents(live)} more={words.crashes(crashes)} isBad={crashes > 0} />
      </ul>
      <Hit limits={overview.limitsHit} />
      <p>{words.about(overview.version, words.up(overview.uptimeSeconds))}</p>
    </>
  );
}

interface TileProps {
  part: AdminPart;
  number: number;
  label: string;
  more?: string;
  isBad?: boolean;
  onOpen?: () => void;
}

function Tile({ part, number, label, more, isBad = false, onOpen }: TileProps) {
  return (
    <li>
      <a class="admin-tile" href={address({ page: 'admin', part })} onClick={onOpen}>
        <strong>{text.admin.number(number)}</strong> <span>{label}</span>
        {more && <span class={`small ${isBad ? 'admin-bad' : 'soft'}`}>{more}</span>}
      </a>
    </li>
  );
}

function Hit({ limits }: { limits: readonly Http.HitBody[] }) {
  if (limits.length === 0) return <p class="soft">{words.noneHit}</p>;
  return (
    <div class="admin-hit">
      <h3>{words.hit}</h3>
      <ul>
        {limits.map(({ name, refused }) => (
          <li key={name}>{words.refused(name, refused)}</li>
        ))}
      </ul>
    </div>
  );
}
