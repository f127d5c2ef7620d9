// Notice draft: the notice being written, stored in the browser until it is sent.
import { signal } from '@preact/signals';
import { currentUser } from '../auth';
import { readLocal, writeLocal } from '../local-storage';

export type Level = 'info' | 'warn' | 'error';

export interface Draft {
  message: string;
  level: Level;
}

const EMPTY_DRAFT: Draft = { message: '', level: 'info' };

export const draft = signal<Draft>(EMPTY_DRAFT);

/** Per user: administrators may share a browser. */
const storageKey = () => `switchboard.notice.${currentUser()?.id ?? ''}`;

let draftKey = '';

/** Loads the stored draft, once per signed-in user. */
export function restoreDraft(): void {
  if (draftKey === storageKey()) return;
  draftKey = storageKey();
  draft.value = EMPTY_DRAFT;
  try {
    const stored = JSON.parse(readLocal(storageKey()) ?? '{}') as Partial<Draft>;
    if (typeof stored.message === 'string' && stored.level) draft.value = { message: stored.message, level: stored.level };
  } catch {
    // No storage, or not a draft: start empty.
  }
}

/** Changes the draft and stores it. */
export function changeDraft(change: Partial<Draft>): void {
  draft.value = { ...draft.value, ...change };
  writeLocal(storageKey(), draft.value.message ? JSON.stringify(draft.value) : null);
}
