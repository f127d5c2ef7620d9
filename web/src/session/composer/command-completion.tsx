// Command completion: the list of slash commands while one is being typed.
import type { RefObject, TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { text } from '../../text';
import { isTypingCommand, matchingCommands } from './agent-commands';
import type { ComposerState } from './composer-state';
import type { Command } from './query-results';

const MAX_SHOWN = 50;

/** What the prompt box needs from the completion. */
export interface CompletionState {
  matches: readonly Command[];
  active: number;
  aria: Record<string, unknown>;
  /** Opens or closes the list for the current text. */
  update: () => void;
  close: () => void;
  choose: (command: Command) => void;
  /** True if the list handled the key. */
  onKeyDown: (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => boolean;
}

export function useCommandCompletion(composer: ComposerState, area: RefObject<HTMLTextAreaElement | null>, commands: () => readonly Command[]): CompletionState {
  const [isTyping, setTyping] = useState(false);
  const [active, setActive] = useState(0);
  const typed = composer.text.value;
  const matches = isTyping && typed.startsWith('/') && !/\s/.test(typed) ? matchingCommands(typed, commands()).slice(0, MAX_SHOWN) : [];
  const isOpen = matches.length > 0;
  useEffect(() => setActive(0), [typed]);

  const close = () => setTyping(false);
  const choose = (command: Command) => {
    composer.text.value = `${command.name} `;
    close();
    area.current?.focus();
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>): boolean => {
    const chosen = matches[active];
    if (!isOpen || !chosen) return false;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) setActive((active + step + matches.length) % matches.length);
    else if (event.key === 'Escape') close();
    else if (event.key === 'Tab' && !event.shiftKey) choose(chosen);
    // A command that is typed in full is sent as it is.
    else if (event.key === 'Enter' && !event.shiftKey && chosen.name !== typed) choose(chosen);
    else {
      close();
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return {
    matches,
    active,
    aria: isOpen ? { 'aria-autocomplete': 'list', 'aria-controls': 'commands', 'aria-activedescendant': `command-${active}` } : { 'aria-autocomplete': 'list' },
    update: () => setTyping(area.current !== null && document.activeElement === area.current && isTypingCommand(area.current.value, area.current.selectionStart)),
    close,
    choose,
    onKeyDown: (event) => (isTypingKey(event.key) ? false : onKeyDown(event)),
  };
}

export function CompletionList({ list }: { list: CompletionState }) {
  const chosen = useRef<HTMLLIElement>(null);
  useEffect(() => chosen.current?.scrollIntoView({ block: 'nearest' }), [list.active]);
  return (
    <>
      <p class="visually-hidden" role="status">{list.matches.length > 0 ? text.composer.commandsFound(list.matches.length) : ''}</p>
      {list.matches.length > 0 && (
        <ul class="commands plain" id="commands" role="listbox" aria-label={text.composer.commands} data-part="commands">
          {list.matches.map((command, index) => (
            <li
              key={command.name}
              id={`command-${index}`}
              ref={index === list.active ? chosen : null}
              role="option"
              aria-selected={index === list.active}
              // Before the box loses the focus.
              onMouseDown={(event) => {
                event.preventDefault();
                list.choose(command);
              }}
            >
              <span class="mono">{command.name} <span class="soft">{command.parameters}</span></span>
              <span class="soft small">{command.description}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Keys that type or move the cursor: the list reacts to the changed text instead. */
function isTypingKey(key: string): boolean {
  return key.length === 1 || ['Shift', 'Control', 'Alt', 'Meta', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'Backspace', 'Delete'].includes(key);
}
