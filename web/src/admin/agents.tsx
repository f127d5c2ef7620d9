// Which agents are configured, and how they are doing.
import type { Http } from '@switchboard/client';
import type { ComponentChildren } from 'preact';
import { request } from '../account';
import { When } from '../parts/when';
import { text } from '../text';
import { AgentTest } from './agent-test';
import { useLoad } from './load';
import { Trouble } from './table';

const words = text.admin.agents;
const EVERY_MS = 10_000;

type Agent = Http.ConfiguredAgentBody;

type State = 'disabled' | 'running' | 'failed' | 'troubled' | 'ready';
const BADGES: Record<State, string> = { disabled: '', running: 'good', failed: 'error', troubled: 'warn', ready: 'accent' };

function stateOf(agent: Agent): State {
  if (!agent.enabled) return 'disabled';
  if (agent.live > 0) return 'running';
  // What was wrong last is kept, also when it has worked since then.
  if (agent.starts > 0 && agent.crashes >= agent.starts) return 'failed';
  return agent.lastError ? 'troubled' : 'ready';
}

export function AgentsPart() {
  const agents = useLoad(() => request<Http.ConfiguredAgentsBody>('GET', '/api/admin/agents'), '', EVERY_MS);
  const { data, isLoading } = agents;
  return (
    <>
      <h2 tabIndex={-1}>{text.admin.part.agents}</h2>
      <p class="soft small">{words.auto}</p>
      <Trouble of={agents} />
      {!data && isLoading && <p class="soft">{text.common.loading}</p>}
      {data?.agents.length === 0 && <p class="soft">{words.empty}</p>}
      <ul class="plain admin-agents">
        {data?.agents.map((agent) => (
          <li key={agent.name} class="card" data-agent={agent.name} data-state={stateOf(agent)}>
            <Card agent={agent} onTested={agents.reload} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Card({ agent, onTested }: { agent: Agent; onTested: () => Promise<void> }) {
  const state = stateOf(agent);
  const said = state === 'running' ? words.states.running(agent.live) : words.states[state];
  return (
    <>
      <div class="admin-head">
        <h3>
          {agent.name} <span class={`badge ${BADGES[state]}`}>{said}</span>
        </h3>
        <span class="soft small">
          {words.protocol}: <code>{agent.protocol}</code>
        </span>
      </div>
      <Counts agent={agent} />
      <Capabilities names={agent.capabilities} />
      <LastError agent={agent} />
      {agent.lastWords.length > 0 && (
        <details>
          <summary>{words.lastWords(agent.lastWords.length)}</summary>
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
      <Count label={words.sessions} what={words.sessionsWhat} value={agent.sessions} />
      <Count label={words.live} what={words.liveWhat} value={agent.live} />
      <Count label={words.starts} what={words.startsWhat} value={agent.starts} />
      <Count label={words.crashes} what={words.crashesWhat} value={agent.crashes} isBad={agent.crashes > 0} />
      <Count label={words.strays} what={words.straysWhat} value={agent.strays} isBad={agent.strays > 0} />
      <Count label={words.oddLines} what={words.oddLinesWhat} value={agent.oddLines} />
    </dl>
  );
}

function Count({ label, what, value, isBad = false }: { label: string; what: string; value: number; isBad?: boolean }) {
  return (
    <div>
      <dt>
        {label} <span class="soft small">{what}</span>
      </dt>
      <dd class={isBad ? 'admin-bad' : ''}>{text.admin.number(value)}</dd>
    </div>
  );
}

function Capabilities({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <Line label={words.capabilities}>
      {names.map((name) => (
        <span class="badge" key={name}>{name}</span>
      ))}
    </Line>
  );
}

function LastError({ agent: { lastError, lastErrorAt } }: { agent: Agent }) {
  if (!lastError) return null;
  return (
    <Line label={words.lastError}>
      <span>{lastError}</span>
      {lastErrorAt && <span class="soft small"><When at={lastErrorAt} /></span>}
    </Line>
  );
}

function Line({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="admin-line">
      <span class="admin-label">{label}</span>
      {children}
    </div>
  );
}
