// The bar at the top of every page of the workbench.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { IconButton } from './parts/icon';
import { list } from './sessions/list';
import { text } from './text';

/** Is the list of sessions shown, where there is no room to show it always? */
export const isDrawerOpen = signal(false);

/** With the button that shows the list of sessions, where that is not beside the page anyway. `isBare`: nothing else in it matters. */
export function Bar({ isBare = false, children }: { isBare?: boolean; children: ComponentChildren }) {
  const waiting = list.waiting.value.length;
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
