// Top bar: the bar above every page, with the button that opens the session list.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { IconButton } from './components/icon';
import { sessionList } from './sessions/session-list';
import { text } from './text';

/** Whether the session list is open where it is a drawer. */
export const isDrawerOpen = signal(false);

/** The button shows only where the list is a drawer. `isBare`: the bar contains nothing else of importance. */
export function TopBar({ isBare = false, children }: { isBare?: boolean; children: ComponentChildren }) {
  const waiting = sessionList.waiting.value.length;
  return (
    <header class={`bar ${isBare ? 'bare' : ''}`}>
      <span class="drawer">
        <IconButton
          name="menu"
          data-part="drawer"
          label={waiting > 0 ? text.sessions.openListWaiting(waiting) : text.sessions.openList}
          aria-expanded={isDrawerOpen.value}
          onClick={() => (isDrawerOpen.value = true)}
        />
        {waiting > 0 && <span class="count" data-part="waiting-count" aria-hidden="true">{waiting}</span>}
      </span>
      {children}
    </header>
  );
}
