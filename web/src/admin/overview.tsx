// Overview section: the gateway in numbers.
import type { Http } from '@switchboard/client';
import { request } from '../auth';
import { hrefOf } from '../route';
import type { AdminSection } from '../route';
import { text } from '../text';
import { ALL_CONNECTIONS, ALL_SESSIONS, connectionFilter, sessionFilter, userFilter } from './filter-state';
import { Limits } from './limits';
import { LoadError } from './table';
import { useLoad } from './use-load';

const strings = text.admin.overview;
const POLL_MS = 5_000;
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

interface Numbers {
  overview: Http.OverviewBody;
  agents: readonly Http.ConfiguredAgentBody[];
}

async function readNumbers(): Promise<Numbers> {
  const [overview, { agents }] = await Promise.all([
    request<Http.OverviewBody>('GET', '/api/admin/overview'),
    request<Http.ConfiguredAgentsBody>('GET', '/api/admin/agents'),
  ]);
  return { overview, agents };
}

export function OverviewSection() {
  const numbers = useLoad(readNumbers, '', POLL_MS);
  const { data, at, isLoading } = numbers;
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.overview}</h2>
      <LoadError loaded={numbers} />
      {data ? <Tiles numbers={data} /> : isLoading && <p class="soft">{text.common.loading}</p>}
      {at !== undefined && <p class="soft small">{strings.read(clock.format(at))}</p>}
      <Limits />
    </>
  );
}

function Tiles({ numbers: { overview, agents } }: { numbers: Numbers }) {
  const live = agents.reduce((sum, agent) => sum + agent.live, 0);
  const crashes = agents.reduce((sum, agent) => sum + agent.crashes, 0);
  const { users, connections, sessions, runningRuns: runs } = overview;
  // The numbers count everything, so their links clear the filters.
  const showAll = () => {
    userFilter.value = '';
    connectionFilter.value = ALL_CONNECTIONS;
    sessionFilter.value = ALL_SESSIONS;
  };
  const showRunning = () => (sessionFilter.value = { ...ALL_SESSIONS, status: 'running' });
  return (
    <>
      <ul class="plain admin-tiles" aria-label={strings.numbers}>
        <Tile section="users" number={users} label={strings.users(users)} onOpen={showAll} />
        <Tile section="connections" number={connections} label={strings.connections(connections)} onOpen={showAll} />
        <Tile section="sessions" number={sessions} label={strings.sessions(sessions)} more={strings.awake(overview.awakeSessions)} onOpen={showAll} />
        <Tile section="sessions" number={runs} label={strings.runs(runs)} onOpen={showRunning} />
        <Tile section="agents" number={live} label={strings.agents(live)} more={strings.crashes(crashes)} isBad={crashes > 0} />
      </ul>
      <LimitsHit limits={overview.limitsHit} />
      <p>{strings.about(overview.version, strings.up(overview.uptimeSeconds))}</p>
    </>
  );
}

interface TileProps {
  section: AdminSection;
  number: number;
  label: string;
  more?: string;
  isBad?: boolean;
  onOpen?: () => void;
}

function Tile({ section, number, label, more, isBad = false, onOpen }: TileProps) {
  return (
    <li>
      <a class="admin-tile" href={hrefOf({ page: 'admin', section })} onClick={onOpen}>
        <strong>{text.admin.number(number)}</strong> <span>{label}</span>
        {more && <span class={`small ${isBad ? 'admin-bad' : 'soft'}`}>{more}</span>}
      </a>
    </li>
  );
}

function LimitsHit({ limits }: { limits: readonly Http.HitBody[] }) {
  if (limits.length === 0) return <p class="soft">{strings.noneHit}</p>;
  return (
    <div class="admin-hit">
      <h3>{strings.hit}</h3>
      <ul>
        {limits.map(({ name, refused }) => (
          <li key={name}>{strings.refused(name, refused)}</li>
        ))}
      </ul>
    </div>
  );
}
