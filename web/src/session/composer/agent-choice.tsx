// Agent choice: selects the agent of a new session.
import type { Account } from '@switchboard/client';
import { readLocal, writeLocal } from '../../local-storage';
import { text } from '../../text';

const strings = text.composer;
const LAST_AGENT_KEY = 'switchboard.agent';

export type Agents =
  | { is: 'loading' }
  | { is: 'failed'; error: string }
  | { is: 'there'; names: readonly string[]; capabilities: Readonly<Record<string, readonly string[]>>; first: string | undefined };

/** Loads the agents. `first`: the one used last if it still exists, otherwise the default. */
export async function readAgents(account: Account): Promise<Omit<Extract<Agents, { is: 'there' }>, 'is'>> {
  const { agents, defaultAgent } = await account.agents();
  const names = agents.map(({ name }) => name);
  const remembered = readLocal(LAST_AGENT_KEY);
  const last = names.find((name) => name === remembered);
  const capabilities = Object.fromEntries(agents.map(({ name, capabilities }) => [name, capabilities]));
  // If another agent than the built-in demo is configured, it is there to be used.
  const chosen = defaultAgent === 'demo' ? names.find((name) => name !== 'demo') : defaultAgent;
  return { names, capabilities, first: last ?? chosen ?? names[0] };
}

export function rememberAgent(name: string): void {
  writeLocal(LAST_AGENT_KEY, name);
}

export function AgentChoice({ agents, chosen, isFixed, choose, retry }: { agents: Agents; chosen: string | undefined; isFixed: boolean; choose: (name: string) => void; retry: () => void }) {
  return (
    <div class="agent-choice" data-part="agent-choice">
      {agents.is === 'loading' && <p class="soft" role="status">{text.common.loading}</p>}
      {agents.is === 'failed' && (
        <>
          <p class="error" role="alert">{agents.error}</p>
          <button type="button" class="button quiet" onClick={retry}>{text.common.retry}</button>
        </>
      )}
      {agents.is === 'there' && agents.names.length === 0 && <p class="error">{strings.noAgents}</p>}
      {agents.is === 'there' && chosen !== undefined && (
        <>
          {agents.names.length === 1 ? <p>{strings.agentOnly(chosen)}</p> : <AgentSelect names={agents.names} chosen={chosen} isFixed={isFixed} choose={choose} />}
          <p class="soft small">{isFixed && agents.names.length > 1 ? strings.agentFixed : describeCapabilities(agents.capabilities[chosen] ?? [])}</p>
        </>
      )}
    </div>
  );
}

function AgentSelect({ names, chosen, isFixed, choose }: { names: readonly string[]; chosen: string; isFixed: boolean; choose: (name: string) => void }) {
  return (
    <label class="agent-select">
      <span>{strings.agent}</span>
      <select class="input" value={chosen} disabled={isFixed} onChange={(event) => choose(event.currentTarget.value)}>
        {names.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  );
}

/** Capabilities that every agent has get no text. */
function describeCapabilities(capabilities: readonly string[]): string {
  return strings.agentCan(capabilities.flatMap((capability) => strings.abilities[capability] ?? []));
}
