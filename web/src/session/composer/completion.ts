// The commands of an agent, and which of them fit what was typed.
import { signal } from '@preact/signals';
import type { Signal } from '@preact/signals';
import type { OpenSession } from '../open';
import { commandsOf } from './inventory';
import type { Command } from './inventory';

const asked = new WeakMap<OpenSession, Signal<readonly Command[]>>();

/** The commands of a session's agent. Asks for them once if nobody told them. */
export function commandsOfSession(session: OpenSession): readonly Command[] {
  const told = session.view.value.commands;
  if (told.length > 0) return commandsOf({ commands: told });
  if (!session.can('query')) return [];
  const known = asked.get(session);
  if (known) return known.value;
  const answer = signal<readonly Command[]>([]);
  asked.set(session, answer);
  session.send('QUERY', { kind: 'commands' }).then(
    ({ result }) => (answer.value = commandsOf(result)),
    // An agent without commands: there is nothing to complete.
    () => {},
  );
  return answer.value;
}

/** Is the first word of a text a command that is being typed? `caret`: where the cursor is. */
export function isTypingCommand(text: string, caret: number): boolean {
  return text.startsWith('/') && !/\s/.test(text.slice(0, caret));
}

/** Those that begin with what was typed, the exact one first, then those that have it somewhere. */
export function fitting(typed: string, commands: readonly Command[]): Command[] {
  const word = typed.toLowerCase();
  const rank = ({ word: own }: Command) => {
    const name = own.toLowerCase();
    return name === word ? 0 : name.startsWith(word) ? 1 : word.length > 1 && name.includes(word.slice(1)) ? 2 : 3;
  };
  return commands.filter((command) => rank(command) < 3).sort((one, other) => rank(one) - rank(other));
}
