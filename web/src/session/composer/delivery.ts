// Delivery: sends prompts to a session, over its connection or over HTTP.
import { Failure, RESEND_LIMIT_MS } from '@switchboard/client';
import type { Protocol } from '@switchboard/client';
import { account } from '../../auth';
import { text } from '../../text';
import type { OpenSession } from '../open-session';
import type { PendingPrompt } from './drafts';

const COMMAND_TYPES = { prompt: 'SUBMIT_PROMPT', steer: 'STEER', followUp: 'FOLLOW_UP', suggest: 'SUGGEST' } as const;

/** Over the session's connection, which resends until it is answered. */
export function sendOverSession(session: OpenSession, prompt: PendingPrompt): Promise<unknown> {
  const options = prompt.idempotencyKey === undefined ? {} : { idempotencyKey: prompt.idempotencyKey };
  return session.send(COMMAND_TYPES[prompt.kind], payloadOf(prompt), options);
}

/**
 * Over HTTP, under the idempotency key stored with the prompt, so that it takes effect once however often and
 * by whichever page it is sent. Retries until it is refused or too old: the gateway forgets keys.
 */
export async function deliverOverHttp(sessionId: string, prompt: PendingPrompt, abort: AbortSignal): Promise<void> {
  const envelope = { type: COMMAND_TYPES[prompt.kind], payload: payloadOf(prompt), messageId: prompt.id, idempotencyKey: prompt.idempotencyKey };
  for (let waitMs = 1_000; ; waitMs = Math.min(waitMs * 2, 30_000)) {
    // Checked before each attempt: the computer may have slept since the last one.
    if (isStale(prompt)) throw new Failure('CONNECTION_LOST', text.composer.stale);
    const failure = await post(sessionId, envelope);
    abort.throwIfAborted();
    if (!failure) return;
    if (failure.status !== 0 && failure.status !== 408 && failure.status !== 429 && failure.status < 500) throw failure;
    await new Promise((resolve) => setTimeout(resolve, failure.retryAfterMs ?? waitMs));
    abort.throwIfAborted();
  }
}

/** Whether the gateway may have forgotten the key, so that a resend could take effect twice. */
export function isStale({ sentAt }: PendingPrompt): boolean {
  return sentAt !== undefined && Date.now() - sentAt > RESEND_LIMIT_MS;
}

/** Deterministic: one key must always carry the same payload. */
function payloadOf({ kind, text, mode, files }: PendingPrompt): Protocol.SubmitPrompt {
  // The other kinds carry only text.
  if (kind !== 'prompt') return { text } as Protocol.SubmitPrompt;
  const attachments = files.map(({ id }) => ({ attachmentId: id }));
  return { text, mode, ...(attachments.length > 0 ? { attachments } : {}) };
}

async function post(sessionId: string, envelope: unknown): Promise<Failure | undefined> {
  try {
    await account().login.fetch(`/api/sessions/${sessionId}/commands`, { method: 'POST', body: envelope });
    return undefined;
  } catch (error) {
    return error instanceof Failure ? error : new Failure('UNREACHABLE', String(error));
  }
}
