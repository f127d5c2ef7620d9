// The commands that wait for their answer. What became of them is not known until it comes, so they
// are sent again on the next line: the same text under the same key takes effect once, as long as the
// gateway knows the key.
import type { CommandType } from './envelope.js';
import { Failure } from './failure.js';
import type { Parcel } from './line.js';

/** These change nothing, can be repeated anyway, or belong to one connection: they carry no key. */
const KEYLESS: ReadonlySet<CommandType> = new Set<CommandType>([
  'AUTH_REFRESH', 'CANCEL_TASK', 'HEARTBEAT', 'QUERY', 'RELEASE_CONTROL', 'REQUEST_STATE', 'TAKE_CONTROL',
]);
const STORAGE_TRIES = 6;

/**
 * How long after it was first sent a command may be sent again under its key. The gateway knows a key for
 * 24 hours; a message may be long under way, and clocks are not exact.
 */
export const SEND_AGAIN_MS = 12 * 3_600_000;

/** How a command is sent. */
export interface SendOptions {
  /** Gives up waiting after so long. It may take effect all the same. */
  timeoutMs?: number;
  /** Only under this taking of control. */
  fence?: number;
  /** A key of one's own, under which it takes effect once, also if another program sends it again. */
  idempotencyKey?: string;
}

interface Waiting {
  parcel: Parcel;
  /** When it was sent for the first time, in milliseconds since 1970. */
  sentAt: number | undefined;
  tries: number;
  resolve(answer: unknown): void;
  reject(failure: Failure): void;
}

/** A new id that nobody else has. */
export function newId(): string {
  const bytes = new Uint8Array(16);
  // Pages that were not served over https have no randomUUID, and old Nodes no global crypto.
  if (globalThis.crypto?.getRandomValues) globalThis.crypto.getRandomValues(bytes);
  else bytes.forEach((_, place) => (bytes[place] = Math.random() * 256));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A command made ready. */
export function parcel(sessionId: string, type: CommandType, payload: unknown, { fence, idempotencyKey }: SendOptions = {}): Parcel {
  const messageId = newId();
  const key = KEYLESS.has(type) ? {} : { idempotencyKey: idempotencyKey ?? messageId };
  const text = JSON.stringify({ type, payload, sessionId, messageId, ...key, ...(fence === undefined ? {} : { fence }) });
  return { type, messageId, text };
}

/** Commands without an answer, the oldest first. */
export class Outbox {
  readonly #waiting = new Map<string, Waiting>();
  #send: ((parcel: Parcel) => void) | undefined;
  /** Everything that happened while there was no line is known by now. */
  #isCaughtUp = false;
  #pause: ReturnType<typeof setTimeout> | undefined;

  /** Sends now if there is a line, else on the next one; answers when the gateway does. */
  add<T>(made: Parcel, { timeoutMs }: SendOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const done = () => clearTimeout(timer);
      const waiting: Waiting = {
        parcel: made,
        sentAt: undefined,
        tries: 0,
        resolve: (answer) => (done(), resolve(answer as T)),
        reject: (failure) => (done(), reject(failure)),
      };
      if (timeoutMs !== undefined) {
        const late = new Failure('CONNECTION_LOST', `No answer to ${made.type} within ${timeoutMs} ms.`);
        timer = setTimeout(() => this.#settle(made.messageId)?.reject(late), timeoutMs);
      }
      this.#waiting.set(made.messageId, waiting);
      if (this.#pause === undefined) this.#post(waiting);
    });
  }

  /** A line is there: everything goes out, in the order in which it was said. */
  attach(send: (parcel: Parcel) => void): void {
    this.#send = send;
    this.#resume();
  }

  /** What happened meanwhile has been heard: no answer is left in it to what is too old to be sent again. */
  caughtUp(): void {
    if (this.#isCaughtUp) return;
    this.#isCaughtUp = true;
    for (const waiting of [...this.#waiting.values()]) if (isStale(waiting)) this.#giveUp(waiting);
  }

  /** The line is gone. */
  detach(): void {
    this.#send = undefined;
    this.#isCaughtUp = false;
    clearTimeout(this.#pause);
    this.#pause = undefined;
  }

  /** The answer to a command. */
  answered(messageId: string | undefined, answer: unknown): void {
    this.#settle(messageId)?.resolve(answer);
  }

  /** A command was refused. What only came too early is said again. */
  refused(messageId: string | undefined, failure: Failure, waitMs: () => number): void {
    const waiting = messageId === undefined ? undefined : this.#waiting.get(messageId);
    if (failure.code === 'RATE_LIMITED') return this.#hold(failure.retryAfterMs ?? waitMs());
    if (waiting && failure.code === 'STORAGE_UNAVAILABLE' && (waiting.tries += 1) < STORAGE_TRIES) {
      return this.#hold(failure.retryAfterMs ?? waitMs());
    }
    this.#settle(messageId)?.reject(failure);
  }

  /** Nobody will answer what was sent already, or (`all`) anything. */
  fail(failure: Failure, which: 'sent' | 'all'): void {
    for (const [id, { sentAt }] of [...this.#waiting]) {
      if (which === 'all' || sentAt !== undefined) this.#settle(id)?.reject(failure);
    }
  }

  #settle(messageId: string | undefined): Waiting | undefined {
    const waiting = messageId === undefined ? undefined : this.#waiting.get(messageId);
    if (waiting) this.#waiting.delete(waiting.parcel.messageId);
    return waiting;
  }

  /** Says nothing for a while, then everything again: a refusal for haste does not name the command. */
  #hold(waitMs: number): void {
    this.#pause ??= setTimeout(() => this.#resume(), waitMs);
  }

  #resume(): void {
    clearTimeout(this.#pause);
    this.#pause = undefined;
    for (const waiting of [...this.#waiting.values()]) this.#post(waiting);
  }

  #post(waiting: Waiting): void {
    if (!this.#send) return;
    if (isStale(waiting)) return this.#isCaughtUp ? this.#giveUp(waiting) : undefined;
    waiting.sentAt ??= Date.now();
    this.#send(waiting.parcel);
  }

  #giveUp({ parcel: { type, messageId }, sentAt }: Waiting): void {
    const message = 'This was sent long ago and never answered, so it is not sent again by itself: it might take effect twice. Look whether it has taken effect, and send it anew if not.';
    this.#settle(messageId)?.reject(new Failure('CONNECTION_LOST', message, 0, { type, sentAt }));
  }
}

/** The gateway may have forgotten its key. */
function isStale({ parcel: { type }, sentAt }: Waiting): boolean {
  return sentAt !== undefined && !KEYLESS.has(type) && Date.now() - sentAt > SEND_AGAIN_MS;
}
