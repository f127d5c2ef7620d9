// What the tabs of one browser tell each other.
import { base } from './place';

/** News for the other tabs. */
export type TabNews =
  /** Somebody has logged in. */
  | { is: 'in'; id: string; username: string }
  /** They have logged out. */
  | { is: 'out'; id: string }
  /** Something about the sessions was changed. */
  | { is: 'sessions' };

// Tabs of a gateway under another base path are none of ours.
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(`switchboard ${base}`) : undefined;

/** Tells all the other tabs. */
export function tellTabs(news: TabNews): void {
  channel?.postMessage(news);
}

/** Calls back until the returned function is called. */
export function onTabs(listener: (news: TabNews) => void): () => void {
  const heard = (event: MessageEvent<TabNews>) => listener(event.data);
  channel?.addEventListener('message', heard);
  return () => channel?.removeEventListener('message', heard);
}
