// How something that was written gets to the session.
import { Failure, SEND_AGAIN_MS } from '@switchboard/client';
import type { Protocol } from '@switchboard/client';
import { account } from '../../account';
import type { OpenSession } from '../open';
import { text } from '../../text';
import type { Letter } from './drafts';

const TYPES = { prompt: 'SUBMIT_PROMPT', steer: 'STEER', followUp: 'FOLLOW_UP', suggest: 'SUGGEST' } as const;

/** Over the session's line, which sends it again until it is answered. */
export function say(session: OpenSession, letter: Letter): Promise<unknown> {
  const options = letter.key === undefined ? {} : { idempotencyKey: letter.key };
  return session.send(TYPES[letter.manner], payloadOf(letter), options);
}

/**
 * Under the key that was kept with it, so that it takes effect once, however often and by whichever
 * page it is brought. Fails only if it was refused, or is too old: the gateway forgets keys.
 */
export async function deliver(session: string, letter: Letter, stop: AbortSignal): Promise<void> {
  const envelope = { type: TYPES[letter.manner], payload: payloadOf(letter), messageId: letter.id, idempotencyKey: letter.key };
  for (let waitMs = 1_000; ; waitMs = Math.min(waitMs * 2, 30_000)) {
    // Asked before each try: the computer may have slept since the last one.
    if (isStale(letter)) throw new Failure('CONNECTION_LOST', text.composer.stale);
    const failure = await post(session, envelope);
    stop.throwIfAborted();
    if (!failure) return;
    if (failure.status !== 0 && failure.status !== 408 && failure.status !== 429 && failure.status < 500) throw failure;
    await new Promise((resolve) => setTimeout(resolve, failure.retryAfterMs ?? waitMs));
    stop.throwIfAborted();
  }
}

/** Sent again, it might take effect twice. */
export function isStale({ at }: Letter): boolean {
  return at !== undefined && Date.now() - at > SEND_AGAIN_MS;
}

/** The same each time: under one key nothing else may be said. */
function payloadOf({ manner, text, mode, files }: Letter): Protocol.SubmitPrompt {
  // Only a prompt has more than its text.
  if (manner !== 'prompt') return { text } as Protocol.SubmitPrompt;
  const attachments = files.map(({ id }) => ({ attachmentId: id }));
  return { text, mode, ...(attachments.length > 0 ? { attachments } : {}) };
}

async function post(session: string, envelope: unknown): Promise<Failure | undefined> {
  try {
    await account().login.fetch(`/api/sessions/${session}/commands`, { method: 'POST', body: envelope });
    return undefined;
  } catch (error) {
    return error instanceof Failure ? error : new Failure('UNREACHABLE', String(error));
  }
}
