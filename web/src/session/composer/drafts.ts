// Drafts: unsent text and unconfirmed prompts, stored in the browser.
//
// One entry per user and session, so that another user of the same browser never sees it and the same user
// finds it after signing in again.
import type { Protocol } from '@switchboard/client';
import { readLocal, writeLocal } from '../../local-storage';

/**
 * `steer` reaches the current run, `followUp` comes after everything queued, `suggest` goes to the member in
 * control.
 */
export type PromptKind = 'prompt' | 'steer' | 'followUp' | 'suggest';

/** An uploaded file, as a prompt refers to it. */
export interface UploadedFile {
  id: string;
  name: string;
  size: number;
  type: string;
}

/** A prompt that was sent and is not confirmed. */
export interface PendingPrompt {
  id: string;
  text: string;
  files: readonly UploadedFile[];
  mode: Protocol.SubmitPrompt['mode'];
  kind: PromptKind;
  /** The last offset known when it was sent: if it arrived, its event comes later. */
  afterOffset: number;
  /** Allows resending without a second effect, also from another page. */
  idempotencyKey?: string;
  /** In milliseconds since 1970. */
  sentAt?: number;
}

/** The content of a composer and its pending prompts. */
export interface Draft {
  text: string;
  files: readonly UploadedFile[];
  mode: Protocol.SubmitPrompt['mode'];
  pending: readonly PendingPrompt[];
  /** On the page for new sessions: the session created for the uploads, and its agent. */
  createdSession?: { id: string; agent: string };
  /** In milliseconds since 1970. */
  savedAt: number;
}

const PREFIX = 'switchboard.draft:';
const MAX_DRAFTS = 50;
/** Used where the browser refuses to store: these drafts live as long as the page. */
const memoryDrafts = new Map<string, Draft>();

export function emptyDraft(): Draft {
  return { text: '', files: [], mode: 'act', pending: [], savedAt: 0 };
}

/** The localStorage key of a draft. */
export function draftKey(userId: string, sessionId: string): string {
  return `${PREFIX}${userId}:${sessionId}`;
}

/** The draft of a user in a session, or an empty one. */
export function readDraft(userId: string, sessionId: string): Draft {
  const key = draftKey(userId, sessionId);
  return memoryDrafts.get(key) ?? parseDraft(readLocal(key)) ?? emptyDraft();
}

/** Stores a draft; an empty one is removed. */
export function saveDraft(userId: string, sessionId: string, draft: Omit<Draft, 'savedAt'>): void {
  const key = draftKey(userId, sessionId);
  const isEmpty = draft.text === '' && draft.files.length === 0 && draft.pending.length === 0;
  const saved = { ...draft, savedAt: Date.now() };
  memoryDrafts.delete(key);
  if (writeLocal(key, isEmpty ? null : JSON.stringify(toStored(saved)))) return isEmpty ? undefined : dropOldest();
  if (!isEmpty) memoryDrafts.set(key, saved);
}

function parseDraft(json: string | null): Draft | undefined {
  if (json === null) return undefined;
  try {
    return fromStored(JSON.parse(json) as Partial<StoredDraft>);
  } catch {
    return undefined;
  }
}

/** The form in localStorage. Its names are fixed: tabs that run another version of the page read it too. */
interface StoredDraft {
  text: string;
  files: readonly UploadedFile[];
  mode: Protocol.SubmitPrompt['mode'];
  letters: readonly StoredPrompt[];
  made?: Draft['createdSession'];
  at: number;
}

type StoredPrompt = Pick<PendingPrompt, 'id' | 'text' | 'files' | 'mode'> & { manner: PromptKind; after: number; key?: string; at?: number };

function toStored({ text, files, mode, pending, createdSession, savedAt }: Draft): StoredDraft {
  const letters = pending.map(({ kind, afterOffset, idempotencyKey, sentAt, ...rest }): StoredPrompt => ({
    ...rest,
    manner: kind,
    after: afterOffset,
    ...(idempotencyKey === undefined ? {} : { key: idempotencyKey }),
    ...(sentAt === undefined ? {} : { at: sentAt }),
  }));
  return { text, files, mode, letters, ...(createdSession ? { made: createdSession } : {}), at: savedAt };
}

function fromStored({ text = '', files = [], mode = 'act', letters = [], made, at = 0 }: Partial<StoredDraft>): Draft {
  const pending = letters.map(({ manner, after, key, at: sentAt, ...rest }): PendingPrompt => ({
    ...rest,
    kind: manner,
    afterOffset: after,
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(sentAt === undefined ? {} : { sentAt }),
  }));
  return { text, files, mode, pending, ...(made ? { createdSession: made } : {}), savedAt: at };
}

function dropOldest(): void {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
  if (keys.length <= MAX_DRAFTS) return;
  const savedAt = (key: string) => parseDraft(readLocal(key))?.savedAt ?? 0;
  const byAge = keys.map((key) => ({ key, savedAt: savedAt(key) })).sort((one, other) => one.savedAt - other.savedAt);
  for (const { key } of byAge.slice(0, keys.length - MAX_DRAFTS)) writeLocal(key, null);
}
