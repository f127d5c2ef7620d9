// What was typed and not yet taken by the gateway, kept in the browser.
//
// One entry per user and session, so that another user of the same browser never finds it, and whoever
// signs in again does.
import type { Protocol } from '@switchboard/client';

/** How something is said. */
export type Manner = 'prompt' | 'steer' | 'followUp' | 'suggest';

/** A file that the gateway has, as far as it has to be known to name it in a prompt. */
export interface KeptFile {
  id: string;
  name: string;
  size: number;
  type: string;
}

/** Something that was sent, and of which it is not known whether it arrived. */
export interface Letter {
  id: string;
  text: string;
  files: readonly KeptFile[];
  mode: Protocol.SubmitPrompt['mode'];
  manner: Manner;
  /** The last event that was known when it was sent: if it arrived, it stands behind that. */
  after: number;
  /** With this key it can be sent again without taking effect twice, also by another page. */
  key?: string;
  /** When it left the box, in milliseconds since 1970. */
  at?: number;
}

/** What is in the box, and what has left it but not arrived. */
export interface Draft {
  text: string;
  files: readonly KeptFile[];
  mode: Protocol.SubmitPrompt['mode'];
  letters: readonly Letter[];
  /** Of the page for new sessions: the session that was made for the files, and its agent. */
  made?: { id: string; agent: string };
  /** When it was kept, in milliseconds since 1970. */
  at: number;
}

const PREFIX = 'switchboard.draft:';
const MOST = 50;
/** Where the browser keeps nothing, drafts live as long as the page. */
const here = new Map<string, Draft>();

/** Nothing typed. */
export function emptyDraft(): Draft {
  return { text: '', files: [], mode: 'act', letters: [], at: 0 };
}

/** Under which name the browser keeps it. */
export function draftName(user: string, session: string): string {
  return `${PREFIX}${user}:${session}`;
}

/** The draft of a user in a session; an empty one if there is none. */
export function readDraft(user: string, session: string): Draft {
  const name = draftName(user, session);
  return here.get(name) ?? parsed(stored(name)) ?? emptyDraft();
}

/** Keeps it; an empty one is forgotten. */
export function keepDraft(user: string, session: string, draft: Omit<Draft, 'at'>): void {
  const name = draftName(user, session);
  const isEmpty = draft.text === '' && draft.files.length === 0 && draft.letters.length === 0;
  here.delete(name);
  try {
    if (isEmpty) return localStorage.removeItem(name);
    localStorage.setItem(name, JSON.stringify({ ...draft, at: Date.now() }));
    dropOldest();
  } catch {
    // No storage, or no room in it.
    if (!isEmpty) here.set(name, { ...draft, at: Date.now() });
  }
}

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function parsed(json: string | null): Draft | undefined {
  if (json === null) return undefined;
  try {
    return { ...emptyDraft(), ...(JSON.parse(json) as Partial<Draft>) };
  } catch {
    return undefined;
  }
}

function dropOldest(): void {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
  if (names.length <= MOST) return;
  const age = (name: string) => parsed(stored(name))?.at ?? 0;
  const byAge = names.map((name) => ({ name, at: age(name) })).sort((one, other) => one.at - other.at);
  for (const { name } of byAge.slice(0, names.length - MOST)) localStorage.removeItem(name);
}
