// What somebody is about to answer, and how far the answer is. It lives as long as the page, so that
// scrolling away from a card loses nothing; secrets are no part of it.
import { signal } from '@preact/signals';
import type { Protocol } from '@switchboard/client';
import { explain } from '../../account';
import { text } from '../../text';
import type { OpenSession } from '../open';

const words = text.questions;
const MOST = 100;
/** A first press counts for so long. */
const ARMED_MS = 8_000;
const replies = new Map<string, Reply>();

/** The reply to one question. */
export class Reply {
  readonly value = signal('');
  readonly ids = signal<readonly string[]>([]);
  readonly reason = signal('');
  readonly wantsReason = signal(false);
  readonly remember = signal(false);
  readonly isBusy = signal(false);
  readonly error = signal('');
  /** Somebody else was faster. */
  readonly beaten = signal('');
  /** The button of a critical question that was pressed once. */
  readonly armed = signal('');
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly question: Protocol.Question) {
    this.value.value = question.secret ? '' : (question.defaultValue ?? '');
  }

  /** True if that may be done now; a critical question wants to be told twice. */
  confirm(button: string): boolean {
    if (this.question.level !== 'CRITICAL') return true;
    clearTimeout(this.#timer);
    if (this.armed.value === button) {
      this.armed.value = '';
      return true;
    }
    this.armed.value = button;
    this.#timer = setTimeout(() => (this.armed.value = ''), ARMED_MS);
    return false;
  }

  /** Answers. With `no`, the reason goes along. */
  async send(session: OpenSession, said: Protocol.SaidOnce, is: 'yes' | 'no'): Promise<boolean> {
    if (this.isBusy.value) return false;
    this.isBusy.value = true;
    this.error.value = '';
    const reason = this.reason.value.trim();
    try {
      const done = await session.answer(this.question.questionId, {
        ...said,
        ...(this.question.allowReason && is === 'no' && reason !== '' ? { reason } : {}),
        ...(this.question.allowRemember && this.remember.value ? { remember: true } : {}),
      });
      if (done.accepted === false) this.beaten.value = done.by ? words.faster(done.by) : words.gone;
      return true;
    } catch (error) {
      this.error.value = explain(error);
      return false;
    } finally {
      this.isBusy.value = false;
    }
  }
}

/** The reply to a question, as far as it is. */
export function replyTo(question: Protocol.Question): Reply {
  const known = replies.get(question.questionId);
  if (known) return known;
  const reply = new Reply(question);
  replies.set(question.questionId, reply);
  const oldest = replies.keys().next().value;
  if (replies.size > MOST && oldest !== undefined) replies.delete(oldest);
  return reply;
}
