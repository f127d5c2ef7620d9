// The list of commands that opens while one is being typed.
import type { RefObject, TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { text } from '../../text';
import { fitting, isTypingCommand } from './completion';
import type { Command } from './inventory';
import type { Writing } from './writing';

const MOST = 50;

/** What the box has to know of the list. */
export interface CommandListState {
  found: readonly Command[];
  active: number;
  aria: Record<string, unknown>;
  /** Looks whether a command is being typed. */
  look: () => void;
  close: () => void;
  choose: (command: Command) => void;
  /** True if the key was for the list. */
  onKeyDown: (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => boolean;
}

export function useCommandList(writing: Writing, area: RefObject<HTMLTextAreaElement | null>, commands: () => readonly Command[]): CommandListState {
  const [isTyping, setTyping] = useState(false);
  const [active, setActive] = useState(0);
  const typed = writing.text.value;
  const found = isTyping && typed.startsWith('/') && !/\s/.test(typed) ? fitting(typed, commands()).slice(0, MOST) : [];
  const isOpen = found.length > 0;
  useEffect(() => setActive(0), [typed]);

  const close = () => setTyping(false);
  const choose = (command: Command) => {
    writing.text.value = `${command.word} `;
    close();
    area.current?.focus();
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>): boolean => {
    const chosen = found[active];
    if (!isOpen || !chosen) return false;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) setActive((active + step + found.length) % found.length);
    else if (event.key === 'Escape') close();
    else if (event.key === 'Tab' && !event.shiftKey) choose(chosen);
    // What is typed in full is meant as it is.
    else if (event.key === 'Enter' && !event.shiftKey && chosen.word !== typed) choose(chosen);
    else {
      close();
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return {
    found,
    active,
    aria: isOpen ? { 'aria-autocomplete': 'list', 'aria-controls': 'commands', 'aria-activedescendant': `command-${active}` } : { 'aria-autocomplete': 'list' },
    look: () => setTyping(area.current !== null && document.activeElement === area.current && isTypingCommand(area.current.value, area.current.selectionStart)),
    close,
    choose,
    onKeyDown: (event) => (isTyped(event.key) ? false : onKeyDown(event)),
  };
}

export function CommandList({ list }: { list: CommandListState }) {
  const chosen = useRef<HTMLLIElement>(null);
  useEffect(() => chosen.current?.scrollIntoView({ block: 'nearest' }), [list.active]);
  return (
    <>
      <p class="heard" role="status">{list.found.length > 0 ? text.composer.commandsFound(list.found.length) : ''}</p>
      {list.found.length > 0 && (
        <ul class="commands plain" id="commands" role="listbox" aria-label={text.composer.commands} data-part="commands">
          {list.found.map((command, place) => (
            <li
              key={command.word}
              id={`command-${place}`}
              ref={place === list.active ? chosen : null}
              role="option"
              aria-selected={place === list.active}
              // Before the box loses the focus.
              onMouseDown={(event) => {
                event.preventDefault();
                list.choose(command);
              }}
            >
              <span class="mono">{command.word} <span class="soft">{command.takes}</span></span>
              <span class="soft small">{command.description}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Keys that type or move, and leave the list as it is until the text has changed. */
function isTyped(key: string): boolean {
  return key.length === 1 || ['Shift', 'Control', 'Alt', 'Meta', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'Backspace', 'Delete'].includes(key);
}
