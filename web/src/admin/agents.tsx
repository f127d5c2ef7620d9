// Agents section: the configured agents and their state.
import type { Http } from '@switchboard/client';
import type { ComponentChildren } from 'preact';
import { request } from '../auth';
import { RelativeTime } from '../components/relative-time';
import { text } from '../text';
import { AgentTest } from './agent-test';
import { LoadError } from './table';
import { useLoad } from './use-load';

const strings = text.admin.agents;
const POLL_MS = 10_000;

type Agent = Http.ConfiguredAgentBody;

type State = 'disabled' | 'running' | 'not_installed' | 'failed' | 'untested' | 'ready';
const BADGES: Record<State, string> = { disabled: '', running: 'good', not_installed: 'error', failed: 'error', untested: '', ready: 'accent' };

function stateOf(agent: Agent): State {
  if (!agent.enabled) return 'disabled';
  return agent.live > 0 && agent.setup !== 'not_installed' ? 'running' : (agent.setup as State);
}

export function AgentsSection() {
  const agents = useLoad(() => request<Http.ConfiguredAgentsBody>('GET', '/api/admin/agents'), '', POLL_MS);
  const { data, isLoading } = agents;
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.agents}</h2>
      <p class="soft small">{strings.auto}</p>
      <LoadError loaded={agents} />
      {!data && isLoading && <p class="soft">{text.common.loading}</p>}
      {data?.agents.length === 0 && <p class="soft">{strings.empty}</p>}
      <ul class="plain admin-agents">
        {data?.agents.map((agent) => (
          <li key={agent.name} class="card" data-agent={agent.name} data-state={stateOf(agent)}>
            <AgentCard agent={agent} onTested={agents.reload} />
          </li>
        ))}
      </ul>
    </>
  );
}

function AgentCard({ agent, onTested }: { agent: Agent; onTested: () => Promise<void> }) {
  const state = stateOf(agent);
  const stateLabel = state === 'running' ? strings.states.running(agent.live) : strings.states[state];
  return (
    <>
      <div class="admin-head">
        <h3>
          {agent.name} <span class={`badge ${BADGES[state]}`}>{stateLabel}</span>
        </h3>
        <span class="soft small">
          {strings.protocol}: <code>{agent.protocol}</code>
        </span>
      </div>
      <Counts agent={agent} />
      <Capabilities names={agent.capabilities} />
      <LastError agent={agent} />
      {agent.lastWords.length > 0 && (
        <details>
          <summary>{strings.lastWords(agent.lastWords.length)}</summary>
          <pre class="admin-lines" tabIndex={0}>{agent.lastWords.join('\n')}</pre>
        </details>
      )}
      {agent.enabled ? <AgentTest name={agent.name} onDone={onTested} /> : <p class="soft small">{text.admin.test.disabled}</p>}
    </>
  );
}

function Counts({ agent }: { agent: Agent }) {
  return (
    <dl class="admin-counts">
      <Count label={strings.sessions} description={strings.sessionsWhat} value={agent.sessions} />
      <Count label={strings.live} description={strings.liveWhat} value={agent.live} />
      <Count label={strings.starts} description={strings.startsWhat} value={agent.starts} />
      <Count label={strings.crashes} description={strings.crashesWhat} value={agent.crashes} isBad={agent.crashes > 0} />
      <Count label={strings.strays} description={strings.straysWhat} value={agent.strays} isBad={agent.strays > 0} />
      <Count label={strings.oddLines} description={strings.oddLinesWhat} value={agent.oddLines} />
    </dl>
  );
}

function Count({ label, description, value, isBad = false }: { label: string; description: string; value: number; isBad?: boolean }) {
  return (
    <div>
      <dt>
        {label} <span class="soft small">{description}</span>
      </dt>
      <dd class={isBad ? 'admin-bad' : ''}>{text.admin.number(value)}</dd>
    </div>
  );
}

function Capabilities({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <LabelledLine label={strings.capabilities}>
      {names.map((name) => (
        <span class="badge" key={name}>{name}</span>
      ))}
    </LabelledLine>
  );
}

function LastError({ agent: { lastError, lastErrorAt } }: { agent: Agent }) {
  if (!lastError) return null;
  return (
    <LabelledLine label={strings.lastError}>
      <span>{lastError}</span>
      {lastErrorAt && <span class="soft small"><RelativeTime at={lastErrorAt} /></span>}
    </LabelledLine>
  );
}

function LabelledLine({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="admin-line">
      <span class="admin-label">{label}</span>
      {children}
    </div>
  );
}
