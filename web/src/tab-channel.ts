// Tab channel: messages between the tabs of one browser.
import { baseUrl } from './route';

/** A message to the other tabs. */
export type TabMessage =
  /** A user has signed in. */
  | { is: 'in'; id: string; username: string }
  /** The user has signed out. */
  | { is: 'out'; id: string }
  /** The session list has changed. */
  | { is: 'sessions' };

// Per base path: tabs of another gateway on the same host are separate.
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(`switchboard ${baseUrl}`) : undefined;

export function postToTabs(message: TabMessage): void {
  channel?.postMessage(message);
}

/** Registers a listener; the returned function removes it. */
export function onTabMessage(listener: (message: TabMessage) => void): () => void {
  const onMessage = (event: MessageEvent<TabMessage>) => listener(event.data);
  channel?.addEventListener('message', onMessage);
  return () => channel?.removeEventListener('message', onMessage);
}
