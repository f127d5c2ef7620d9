// Browser notifications: tells the user about questions and finished runs while the page is hidden.
//
// Several tabs notice the same change; the first one to claim it shows it. The notification contains only
// the session's name.
import { effect, signal } from '@preact/signals';
import { readLocal, writeLocal } from './local-storage';
import { navigate } from './route';
import { sessionList } from './sessions/session-list';
import type { Row } from './sessions/session-list';
import { sessionName } from './sessions/session-name';
import { text } from './text';

/** `unsupported`: the browser has no notifications, or not on this kind of address. `unasked`: not decided yet. */
export type NotificationSetting = 'unsupported' | 'unasked' | 'on' | 'off' | 'blocked';

const SETTING_KEY = 'switchboard-notify';
const CLAIM_KEY = 'switchboard-notified';
const VISIBLE_KEY = 'switchboard-looking';
const TAB_ID = String(Math.random());
/** All tabs notice a change within this time. */
const CLAIM_LIFETIME_MS = 45_000;
const VISIBLE_MS = 3_000;
/** A run this long is worth offering notifications after it. */
const LONG_RUN_MS = 10_000;

function currentSetting(): NotificationSetting {
  if (!('Notification' in globalThis) || !isSecureContext) return 'unsupported';
  if (Notification.permission === 'denied') return 'blocked';
  const stored = readLocal(SETTING_KEY);
  if (stored === 'off') return 'off';
  return Notification.permission === 'granted' && stored === 'on' ? 'on' : 'unasked';
}

export const notificationSetting = signal<NotificationSetting>(currentSetting());
/** Whether to offer notifications. */
export const isOffered = signal(false);

/** Call from a click only: browsers refuse the permission prompt otherwise. */
export async function enableNotifications(): Promise<void> {
  isOffered.value = false;
  if ((await Notification.requestPermission()) === 'granted') writeLocal(SETTING_KEY, 'on');
  notificationSetting.value = currentSetting();
}

export function disableNotifications(): void {
  isOffered.value = false;
  writeLocal(SETTING_KEY, 'off');
  notificationSetting.value = currentSetting();
}

type Kind = 'question' | 'ended';

/** Watches the session list; the returned function stops. */
export function watchSessions(): () => void {
  let previous: ReadonlyMap<string, Row> | undefined;
  const runStarts = new Map<string, number>();
  const stop = effect(() => {
    const rows = new Map(sessionList.rows.value.map((row) => [row.id, row]));
    if (sessionList.state.value === 'loading') return;
    for (const row of rows.values()) {
      const previousRow = previous?.get(row.id);
      if (previousRow) notifyChanges(previousRow, row, runStarts);
    }
    previous = rows;
  });
  const markVisible = () => document.hidden || writeLocal(VISIBLE_KEY, String(Date.now()));
  const markHidden = () => document.hidden && writeLocal(VISIBLE_KEY, '0');
  markVisible();
  const timer = setInterval(markVisible, VISIBLE_MS);
  document.addEventListener('visibilitychange', markVisible);
  document.addEventListener('visibilitychange', markHidden);
  return () => {
    stop();
    clearInterval(timer);
    document.removeEventListener('visibilitychange', markVisible);
    document.removeEventListener('visibilitychange', markHidden);
  };
}

function notifyChanges(previous: Row, row: Row, runStarts: Map<string, number>): void {
  const isWorking = ({ status }: Row) => status === 'running' || status === 'waiting';
  if (!isWorking(previous) && isWorking(row)) runStarts.set(row.id, Date.now());
  if (row.openQuestions > previous.openQuestions && row.access !== 'viewer') notify(row, 'question');
  if (isWorking(previous) && !isWorking(row)) {
    const startedAt = runStarts.get(row.id);
    runStarts.delete(row.id);
    notify(row, 'ended');
    if (startedAt && Date.now() - startedAt >= LONG_RUN_MS && notificationSetting.peek() === 'unasked') isOffered.value = true;
  }
}

function notify(row: Row, kind: Kind): void {
  if (!document.hidden || notificationSetting.peek() !== 'on' || isVisibleElsewhere() || !claim(`${kind} ${row.id} ${row.openQuestions}`)) return;
  // With the same tag, a later notification replaces the one of the same session.
  const notification = new Notification(text.sessions.notify[kind], { body: sessionName(row), tag: `switchboard ${row.id}` });
  notification.onclick = () => {
    window.focus();
    navigate({ page: 'session', id: row.id });
    notification.close();
  };
}

/** Whether another tab of this page is visible and shows the change anyway. */
function isVisibleElsewhere(): boolean {
  return Date.now() - Number(readLocal(VISIBLE_KEY)) < VISIBLE_MS + 1_000;
}

/** True for the first tab that claims a key, also if it claims it again. */
function claim(key: string): boolean {
  let claims: Record<string, { at: number; by: string }> = {};
  try {
    claims = JSON.parse(readLocal(CLAIM_KEY) ?? '{}') as typeof claims;
  } catch {
    // Not ours: ignore it.
  }
  const now = Date.now();
  const live = Object.entries(claims).filter(([, { at }]) => now - at < CLAIM_LIFETIME_MS);
  if (live.some(([claimedKey, { by }]) => claimedKey === key && by !== TAB_ID)) return false;
  writeLocal(CLAIM_KEY, JSON.stringify({ ...Object.fromEntries(live), [key]: { at: now, by: TAB_ID } }));
  return true;
}
