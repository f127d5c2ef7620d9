// Answer draft: the answer being given to a question, and its sending. Stored per tab, so that neither
// scrolling away nor a reload loses it; secrets are never stored.
import { effect, signal } from '@preact/signals';
import type { Protocol } from '@switchboard/client';
import { currentUser, explain } from '../../auth';
import { text } from '../../text';
import type { OpenSession } from '../open-session';

const strings = text.questions;
const MAX_DRAFTS = 100;
/** How long the first press on a critical answer counts. */
const ARMED_FOR_MS = 8_000;
const PREFIX = 'switchboard.reply:';
const drafts = new Map<string, AnswerDraft>();

/** The draft of one answer. */
export class AnswerDraft {
  readonly value = signal('');
  readonly ids = signal<readonly string[]>([]);
  readonly reason = signal('');
  readonly wantsReason = signal(false);
  readonly remember = signal(false);
  readonly isBusy = signal(false);
  readonly error = signal('');
  /** Set if another user answered first. */
  readonly answeredByOther = signal('');
  /** The button of a critical question that was pressed once. */
  readonly armed = signal('');
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly question: Protocol.Question, readonly storageKey: string) {
    this.value.value = question.secret ? '' : (question.defaultValue ?? '');
    if (question.secret) return;
    const stored = readStored(storageKey);
    if (stored) [this.value.value, this.ids.value, this.reason.value] = stored;
    this.wantsReason.value = this.reason.value !== '';
    let isFirst = true;
    effect(() => {
      const content: StoredAnswer = [this.value.value, this.ids.value, this.reason.value];
      if (!isFirst) writeStored(storageKey, content);
      isFirst = false;
    });
  }

  /** Whether a button may act now; a critical question requires two presses. */
  confirm(button: string): boolean {
    if (this.question.level !== 'CRITICAL') return true;
    clearTimeout(this.#timer);
    if (this.armed.value === button) {
      this.armed.value = '';
      return true;
    }
    this.armed.value = button;
    this.#timer = setTimeout(() => (this.armed.value = ''), ARMED_FOR_MS);
    return false;
  }

  /** Sends the answer. The reason is included only with `no`. */
  async send(session: OpenSession, answer: Protocol.SaidOnce, verdict: 'yes' | 'no'): Promise<boolean> {
    if (this.isBusy.value) return false;
    this.isBusy.value = true;
    this.error.value = '';
    const reason = this.reason.value.trim();
    try {
      const done = await session.answer(this.question.questionId, {
        ...answer,
        ...(this.question.allowReason && verdict === 'no' && reason !== '' ? { reason } : {}),
        ...(this.question.allowRemember && this.remember.value ? { remember: true } : {}),
      });
      writeStored(this.storageKey, undefined);
      if (done.accepted === false) this.answeredByOther.value = done.by ? strings.faster(done.by) : strings.gone;
      return true;
    } catch (error) {
      this.error.value = explain(error);
      return false;
    } finally {
      this.isBusy.value = false;
    }
  }
}

type StoredAnswer = [value: string, ids: readonly string[], reason: string];

function readStored(storageKey: string): StoredAnswer | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(storageKey) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

function writeStored(storageKey: string, answer: StoredAnswer | undefined): void {
  try {
    if (answer) sessionStorage.setItem(storageKey, JSON.stringify(answer));
    else sessionStorage.removeItem(storageKey);
  } catch {
    // No storage: the draft lives as long as the page.
  }
}

/** The draft for a question, separate for each user. */
export function answerDraftFor(question: Protocol.Question): AnswerDraft {
  const storageKey = `${PREFIX}${currentUser()?.id ?? ''}:${question.questionId}`;
  const existing = drafts.get(storageKey);
  if (existing) return existing;
  const draft = new AnswerDraft(question, storageKey);
  drafts.set(storageKey, draft);
  const oldest = drafts.keys().next().value;
  if (drafts.size > MAX_DRAFTS && oldest !== undefined) drafts.delete(oldest);
  return draft;
}
