// Outbox: commands that wait for their answer. Until it arrives their fate is unknown, so they are resent on
// the next connection: the same text under the same idempotency key takes effect once, as long as the gateway
// remembers the key.
import { isKeyless } from './command.js';
import type { EncodedCommand, SendOptions } from './command.js';
import { Failure } from './failure.js';

const MAX_STORAGE_TRIES = 6;

/**
 * How long after its first sending a command may be resent. The gateway remembers keys for 24 hours; the
 * margin covers slow messages and clocks that differ.
 */
export const RESEND_LIMIT_MS = 12 * 3_600_000;

interface PendingCommand {
  command: EncodedCommand;
  /** When it was first sent, in milliseconds since 1970. */
  sentAt: number | undefined;
  tries: number;
  resolve(answer: unknown): void;
  reject(failure: Failure): void;
}

/** Unanswered commands, oldest first. */
export class Outbox {
  readonly #pending = new Map<string, PendingCommand>();
  #send: ((command: EncodedCommand) => void) | undefined;
  /** Everything missed while disconnected has been received. */
  #isCaughtUp = false;
  #holdTimer: ReturnType<typeof setTimeout> | undefined;

  /** Sends now or on the next connection; resolves with the gateway's answer. */
  add<T>(command: EncodedCommand, { timeoutMs }: SendOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const stopTimer = () => clearTimeout(timer);
      const pending: PendingCommand = {
        command,
        sentAt: undefined,
        tries: 0,
        resolve: (answer) => (stopTimer(), resolve(answer as T)),
        reject: (failure) => (stopTimer(), reject(failure)),
      };
      if (timeoutMs !== undefined) {
        const timeout = new Failure('CONNECTION_LOST', `No answer to ${command.type} within ${timeoutMs} ms.`);
        timer = setTimeout(() => this.#settle(command.messageId)?.reject(timeout), timeoutMs);
      }
      this.#pending.set(command.messageId, pending);
      if (this.#holdTimer === undefined) this.#sendNow(pending);
    });
  }

  /** A connection is open: sends everything, in the original order. */
  attach(send: (command: EncodedCommand) => void): void {
    this.#send = send;
    this.#resendAll();
  }

  /** Everything missed has been received. It held no answer to commands that are too old to resend, so those fail. */
  markCaughtUp(): void {
    if (this.#isCaughtUp) return;
    this.#isCaughtUp = true;
    for (const pending of [...this.#pending.values()]) if (isStale(pending)) this.#giveUp(pending);
  }

  /** The connection is gone. */
  detach(): void {
    this.#send = undefined;
    this.#isCaughtUp = false;
    clearTimeout(this.#holdTimer);
    this.#holdTimer = undefined;
  }

  /** Resolves a command with its answer. */
  resolve(messageId: string | undefined, answer: unknown): void {
    this.#settle(messageId)?.resolve(answer);
  }

  /** A command was refused: resends it after a rate limit or a storage failure, otherwise rejects it. */
  handleRefusal(messageId: string | undefined, failure: Failure, waitMs: () => number): void {
    const pending = messageId === undefined ? undefined : this.#pending.get(messageId);
    if (failure.code === 'RATE_LIMITED') return this.#holdAll(failure.retryAfterMs ?? waitMs());
    if (pending && failure.code === 'STORAGE_UNAVAILABLE' && (pending.tries += 1) < MAX_STORAGE_TRIES) {
      return this.#holdAll(failure.retryAfterMs ?? waitMs());
    }
    this.#settle(messageId)?.reject(failure);
  }

  /** Rejects the commands that were already sent, or all. */
  rejectAll(failure: Failure, scope: 'sent' | 'all'): void {
    for (const [id, { sentAt }] of [...this.#pending]) {
      if (scope === 'all' || sentAt !== undefined) this.#settle(id)?.reject(failure);
    }
  }

  #settle(messageId: string | undefined): PendingCommand | undefined {
    const pending = messageId === undefined ? undefined : this.#pending.get(messageId);
    if (pending) this.#pending.delete(pending.command.messageId);
    return pending;
  }

  /** Pauses, then resends everything: a rate limit does not name the command it refused. */
  #holdAll(waitMs: number): void {
    this.#holdTimer ??= setTimeout(() => this.#resendAll(), waitMs);
  }

  #resendAll(): void {
    clearTimeout(this.#holdTimer);
    this.#holdTimer = undefined;
    for (const pending of [...this.#pending.values()]) this.#sendNow(pending);
  }

  #sendNow(pending: PendingCommand): void {
    if (!this.#send) return;
    if (isStale(pending)) return this.#isCaughtUp ? this.#giveUp(pending) : undefined;
    pending.sentAt ??= Date.now();
    this.#send(pending.command);
  }

  #giveUp({ command: { type, messageId }, sentAt }: PendingCommand): void {
    const message = 'This was sent long ago and never answered, so it is not sent again by itself: it might take effect twice. Look whether it has taken effect, and send it anew if not.';
    this.#settle(messageId)?.reject(new Failure('CONNECTION_LOST', message, 0, { type, sentAt }));
  }
}

/** Whether the gateway may have forgotten the command's key. */
function isStale({ command: { type }, sentAt }: PendingCommand): boolean {
  return sentAt !== undefined && !isKeyless(type) && Date.now() - sentAt > RESEND_LIMIT_MS;
}
