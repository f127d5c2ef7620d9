// What somebody is about to answer, and how far the answer is. It is kept as long as the tab is, so that
// neither scrolling away nor a reload loses anything; secrets are no part of it.
import { effect, signal } from '@preact/signals';
import type { Protocol } from '@switchboard/client';
import { explain, standing } from '../../account';
import { text } from '../../text';
import type { OpenSession } from '../open';

const words = text.questions;
const MOST = 100;
/** A first press counts for so long. */
const ARMED_MS = 8_000;
const PREFIX = 'switchboard.reply:';
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

  constructor(readonly question: Protocol.Question, readonly name: string) {
    this.value.value = question.secret ? '' : (question.defaultValue ?? '');
    if (question.secret) return;
    const kept = read(name);
    if (kept) [this.value.value, this.ids.value, this.reason.value] = kept;
    this.wantsReason.value = this.reason.value !== '';
    let isFirst = true;
    effect(() => {
      const now: Kept = [this.value.value, this.ids.value, this.reason.value];
      if (!isFirst) keep(name, now);
      isFirst = false;
    });
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
      keep(this.name, undefined);
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

type Kept = [value: string, ids: readonly string[], reason: string];

function read(name: string): Kept | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

function keep(name: string, kept: Kept | undefined): void {
  try {
    if (kept) sessionStorage.setItem(name, JSON.stringify(kept));
    else sessionStorage.removeItem(name);
  } catch {
    // Then it lives as long as the page.
  }
}

/** The reply to a question, as far as it is: of the one who is signed in, and of nobody after them. */
export function replyTo(question: Protocol.Question): Reply {
  const now = standing.value;
  const name = `${PREFIX}${now.is === 'in' ? now.user.id : ''}:${question.questionId}`;
  const known = replies.get(name);
  if (known) return known;
  const reply = new Reply(question, name);
  replies.set(name, reply);
  const oldest = replies.keys().next().value;
  if (replies.size > MOST && oldest !== undefined) replies.delete(oldest);
  return reply;
}
