// Agent commands: the slash commands of an agent, and which of them match what was typed.
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { OpenSession } from '../open-session';
import { commandsOf } from './query-results';
import type { Command } from './query-results';

const queriedCommands = new WeakMap<OpenSession, Signal<readonly Command[]>>();

/** The commands of a session's agent. Queries them once if the agent has not reported any. */
export function commandsOfSession(session: OpenSession): readonly Command[] {
  const reported = session.view.value.commands;
  if (reported.length > 0) return commandsOf({ commands: reported });
  if (!session.can('query')) return [];
  const queried = queriedCommands.get(session);
  if (queried) return queried.value;
  const commands = signal<readonly Command[]>([]);
  queriedCommands.set(session, commands);
  session.send('QUERY', { kind: 'commands' }).then(
    ({ result }) => (commands.value = commandsOf(result)),
    // The agent has no commands: nothing to complete.
    () => {},
  );
  return commands.value;
}

/** Whether a command is being typed at the start of the text. */
export function isTypingCommand(text: string, cursor: number): boolean {
  return text.startsWith('/') && !/\s/.test(text.slice(0, cursor));
}

/** Exact match first, then prefixes, then matches anywhere. */
export function matchingCommands(typed: string, commands: readonly Command[]): Command[] {
  const query = typed.toLowerCase();
  const rank = ({ name: ownName }: Command) => {
    const name = ownName.toLowerCase();
    return name === query ? 0 : name.startsWith(query) ? 1 : query.length > 1 && name.includes(query.slice(1)) ? 2 : 3;
  };
  return commands.filter((command) => rank(command) < 3).sort((one, other) => rank(one) - rank(other));
}
