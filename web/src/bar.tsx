// The bar at the top of every page of the workbench.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { IconButton } from './parts/icon';
import { text } from './text';

/** Is the list of sessions shown, where there is no room to show it always? */
export const isDrawerOpen = signal(false);

/** With the button that shows the list of sessions, where that is not beside the page anyway. */
export function Bar({ children }: { children?: ComponentChildren }) {
  return (
    <header class={`bar ${children ? '' : 'bare'}`}>
      <IconButton name="menu" class="drawer-button" label={text.sessions.openList} aria-expanded={isDrawerOpen.value} onClick={() => (isDrawerOpen.value = true)} />
      {children}
    </header>
  );
}
