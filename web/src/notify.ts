// Tells by the browser's own notifications that a question waits or a run has ended, while nobody looks.
//
// Several tabs see the same; the first one that claims it tells it. Nothing of what was said is told.
import { effect, signal } from '@preact/signals';
import { go } from './place';
import { list } from './sessions/list';
import type { Row } from './sessions/list';
import { nameOf } from './sessions/naming';
import { text } from './text';

/** What somebody chose. `unsupported`: the browser has none, or not on this kind of address. */
export type Choice = 'unsupported' | 'unasked' | 'on' | 'off' | 'blocked';

const CHOICE_KEY = 'switchboard-notify';
const CLAIM_KEY = 'switchboard-notified';
const LOOK_KEY = 'switchboard-looking';
const TAB = String(Math.random());
/** Two tabs notice the same within this time. */
const CLAIM_MS = 45_000;
const LOOK_MS = 3_000;
/** A run that took so long was worth waiting for elsewhere. */
const LONG_RUN_MS = 10_000;

const read = (key: string): string | null => {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
};
const write = (key: string, value: string): void => {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage is switched off: then nobody remembers.
  }
};

function chosen(): Choice {
  if (!('Notification' in globalThis) || !isSecureContext) return 'unsupported';
  if (Notification.permission === 'denied') return 'blocked';
  const said = read(CHOICE_KEY);
  if (said === 'off') return 'off';
  return Notification.permission === 'granted' && said === 'on' ? 'on' : 'unasked';
}

export const choice = signal<Choice>(chosen());
/** Is it time to ask, politely? */
export const isOffered = signal(false);

/** Only ever called by a click. */
export async function allow(): Promise<void> {
  isOffered.value = false;
  if ((await Notification.requestPermission()) === 'granted') write(CHOICE_KEY, 'on');
  choice.value = chosen();
}

export function refuse(): void {
  isOffered.value = false;
  write(CHOICE_KEY, 'off');
  choice.value = chosen();
}

type Kind = 'question' | 'ended';

/** Watches the list, until the returned function is called. */
export function watch(): () => void {
  let before: ReadonlyMap<string, Row> | undefined;
  const runs = new Map<string, number>();
  const stop = effect(() => {
    const rows = new Map(list.rows.value.map((row) => [row.id, row]));
    if (list.state.value === 'loading') return;
    for (const row of rows.values()) {
      const was = before?.get(row.id);
      if (was) compare(was, row, runs);
    }
    before = rows;
  });
  const look = () => document.hidden || write(LOOK_KEY, String(Date.now()));
  const left = () => document.hidden && write(LOOK_KEY, '0');
  look();
  const timer = setInterval(look, LOOK_MS);
  document.addEventListener('visibilitychange', look);
  document.addEventListener('visibilitychange', left);
  return () => {
    stop();
    clearInterval(timer);
    document.removeEventListener('visibilitychange', look);
    document.removeEventListener('visibilitychange', left);
  };
}

function compare(was: Row, row: Row, runs: Map<string, number>): void {
  const isAtWork = ({ status }: Row) => status === 'running' || status === 'waiting';
  if (!isAtWork(was) && isAtWork(row)) runs.set(row.id, Date.now());
  if (row.openQuestions > was.openQuestions && row.access !== 'viewer') tell(row, 'question');
  if (isAtWork(was) && !isAtWork(row)) {
    const began = runs.get(row.id);
    runs.delete(row.id);
    tell(row, 'ended');
    if (began && Date.now() - began >= LONG_RUN_MS && choice.peek() === 'unasked') isOffered.value = true;
  }
}

function tell(row: Row, kind: Kind): void {
  if (!document.hidden || choice.peek() !== 'on' || isLookedAt() || !claim(`${kind} ${row.id} ${row.openQuestions}`)) return;
  // A tag: what comes later about the same session takes the place of what is shown.
  const shown = new Notification(text.sessions.notify[kind], { body: nameOf(row), tag: `switchboard ${row.id}` });
  shown.onclick = () => {
    window.focus();
    go({ page: 'session', id: row.id });
    shown.close();
  };
}

/** Somebody looks at another tab of this page, and sees it there. */
function isLookedAt(): boolean {
  return Date.now() - Number(read(LOOK_KEY)) < LOOK_MS + 1_000;
}

/** True for the first tab that asks; it may ask again. */
function claim(what: string): boolean {
  let claims: Record<string, { at: number; by: string }> = {};
  try {
    claims = JSON.parse(read(CLAIM_KEY) ?? '{}') as typeof claims;
  } catch {
    // Written by something else.
  }
  const now = Date.now();
  const live = Object.entries(claims).filter(([, { at }]) => now - at < CLAIM_MS);
  if (live.some(([claimed, { by }]) => claimed === what && by !== TAB)) return false;
  write(CLAIM_KEY, JSON.stringify({ ...Object.fromEntries(live), [what]: { at: now, by: TAB } }));
  return true;
}
