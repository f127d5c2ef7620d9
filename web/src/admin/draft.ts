// The notice that somebody is writing. The browser keeps it until it is sent.
import { signal } from '@preact/signals';
import { standing } from '../account';

/** How important a notice is. */
export type Level = 'info' | 'warn' | 'error';

/** A notice that was not sent yet. */
export interface Draft {
  message: string;
  level: Level;
}

const EMPTY: Draft = { message: '', level: 'info' };

/** What is being written. */
export const draft = signal<Draft>(EMPTY);

/** Each administrator of a shared browser has their own. */
const key = () => `switchboard.notice.${standing.value.is === 'in' ? standing.value.user.id : ''}`;

let whose = '';

/** Takes up what was written before, once for whoever is signed in. */
export function recall(): void {
  if (whose === key()) return;
  whose = key();
  draft.value = EMPTY;
  try {
    const kept = JSON.parse(localStorage.getItem(key()) ?? '{}') as Partial<Draft>;
    if (typeof kept.message === 'string' && kept.level) draft.value = { message: kept.message, level: kept.level };
  } catch {
    // Storage that is locked or full of something else: the draft begins empty.
  }
}

/** Changes it, here and in what the browser keeps. */
export function write(change: Partial<Draft>): void {
  draft.value = { ...draft.value, ...change };
  try {
    if (draft.value.message) localStorage.setItem(key(), JSON.stringify(draft.value));
    else localStorage.removeItem(key());
  } catch {
    // It stays in this page only.
  }
}
