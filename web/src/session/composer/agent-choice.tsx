// Which agent a new session shall have.
import type { Account } from '@switchboard/client';
import { text } from '../../text';

const words = text.composer;
const LAST = 'switchboard.agent';

/** The agents, as far as they are known. */
export type Agents =
  | { is: 'loading' }
  | { is: 'failed'; why: string }
  | { is: 'there'; names: readonly string[]; abilities: Readonly<Record<string, readonly string[]>>; first: string | undefined };

/** Reads which there are; `first` is the one that was used last, if it is still there. */
export async function readAgents(account: Account): Promise<Omit<Extract<Agents, { is: 'there' }>, 'is'>> {
  const { agents, defaultAgent } = await account.agents();
  const names = agents.map(({ name }) => name);
  const last = names.find((name) => name === remembered());
  const abilities = Object.fromEntries(agents.map(({ name, capabilities }) => [name, capabilities]));
  // Whoever has set up another agent than the built-in one did so to use it.
  const chosen = defaultAgent === 'demo' ? names.find((name) => name !== 'demo') : defaultAgent;
  return { names, abilities, first: last ?? chosen ?? names[0] };
}

function remembered(): string | undefined {
  try {
    return localStorage.getItem(LAST) ?? undefined;
  } catch {
    return undefined;
  }
}

/** For the next time. */
export function rememberAgent(name: string): void {
  try {
    localStorage.setItem(LAST, name);
  } catch {
    // Then it is not remembered.
  }
}

export function AgentChoice({ agents, chosen, isFixed, choose, retry }: { agents: Agents; chosen: string | undefined; isFixed: boolean; choose: (name: string) => void; retry: () => void }) {
  return (
    <div class="agent-choice" data-part="agent-choice">
      {agents.is === 'loading' && <p class="soft" role="status">{text.common.loading}</p>}
      {agents.is === 'failed' && (
        <>
          <p class="error" role="alert">{agents.why}</p>
          <button type="button" class="button quiet" onClick={retry}>{text.common.retry}</button>
        </>
      )}
      {agents.is === 'there' && agents.names.length === 0 && <p class="error">{words.noAgents}</p>}
      {agents.is === 'there' && chosen !== undefined && (
        <>
          {agents.names.length === 1 ? <p>{words.agentOnly(chosen)}</p> : <Select names={agents.names} chosen={chosen} isFixed={isFixed} choose={choose} />}
          <p class="soft small">{isFixed && agents.names.length > 1 ? words.agentFixed : can(agents.abilities[chosen] ?? [])}</p>
        </>
      )}
    </div>
  );
}

function Select({ names, chosen, isFixed, choose }: { names: readonly string[]; chosen: string; isFixed: boolean; choose: (name: string) => void }) {
  return (
    <label class="agent-select">
      <span>{words.agent}</span>
      <select class="input" value={chosen} disabled={isFixed} onChange={(event) => choose(event.currentTarget.value)}>
        {names.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
    </label>
  );
}

/** What it can do, in words; what every agent can is not worth one. */
function can(abilities: readonly string[]): string {
  return words.agentCan(abilities.flatMap((ability) => words.abilities[ability] ?? []));
}
