// Composer state: the prompt being written, and sent prompts whose arrival is not confirmed. All of it is
// stored in the browser until the gateway has accepted it.
import { batch, effect, signal } from '@preact/signals';
import { Failure, newId } from '@switchboard/client';
import type { Protocol } from '@switchboard/client';
import { currentUser, explain } from '../../auth';
import type { OpenSession } from '../open-session';
import { AttachedFiles } from './attached-files';
import { deliverOverHttp, isStale, sendOverSession } from './delivery';
import { draftKey, emptyDraft, readDraft, saveDraft } from './drafts';
import type { Draft, PendingPrompt, PromptKind } from './drafts';

/** A sent prompt. `unsent`: it was not accepted, and the box already holds another text. */
export interface SentPrompt extends PendingPrompt {
  readonly state: 'sending' | 'checking' | 'unsent';
  readonly error?: string;
}

const SAVE_DELAY_MS = 400;
/** Time for a prompt that was on its way when the page was closed to appear in the journal. */
const ARRIVAL_WAIT_MS = 1_000;
/** A pending prompt stored longer ago is not resent without asking. */
const RESEND_WITHOUT_ASKING_MS = 600_000;

/** The state of one composer. */
export class ComposerState {
  readonly text = signal('');
  readonly mode = signal<Protocol.SubmitPrompt['mode']>('act');
  readonly pending = signal<readonly SentPrompt[]>([]);
  /** What is wrong with the current text or files. */
  readonly error = signal('');
  readonly createdSession = signal<Draft['createdSession']>(undefined);
  readonly files: AttachedFiles;
  readonly #userId: string;
  readonly #closed = new AbortController();
  readonly #draft: Draft;
  /** Pending prompts of this tab; other tabs remove their own. */
  readonly #ownPending = new Set<string>();
  /** The content as last read or saved: a tab in which nothing was typed must not overwrite what another tab saved. */
  #savedContent: string;
  #saveTimer: ReturnType<typeof setTimeout> | undefined;
  #stopSaving: () => void;

  /** `draftId`: a session id, or `new`; `session`: resolves with the session to upload files to. */
  constructor(readonly draftId: string, session: () => Promise<string>) {
    this.#userId = currentUser()?.id ?? '';
    this.#draft = readDraft(this.#userId, draftId);
    this.text.value = this.#draft.text;
    this.mode.value = this.#draft.mode;
    this.createdSession.value = this.#draft.createdSession;
    this.pending.value = this.#draft.pending.map((prompt): SentPrompt => ({ ...prompt, state: 'checking' }));
    for (const { id } of this.#draft.pending) this.#ownPending.add(id);
    this.files = new AttachedFiles(session, this.#draft.files);
    this.#savedContent = this.#content();
    this.#stopSaving = effect(() => {
      void [this.text.value, this.mode.value, this.files.list.value, this.pending.value, this.createdSession.value];
      clearTimeout(this.#saveTimer);
      this.#saveTimer = setTimeout(this.#save, SAVE_DELAY_MS);
    });
    addEventListener('pagehide', this.#save);
    document.addEventListener('visibilitychange', this.#save);
    addEventListener('storage', this.#onStorage);
  }

  /** Saves the draft and stops. */
  close(): void {
    this.#save();
    this.#stopSaving();
    clearTimeout(this.#saveTimer);
    this.#closed.abort();
    removeEventListener('pagehide', this.#save);
    document.removeEventListener('visibilitychange', this.#save);
    removeEventListener('storage', this.#onStorage);
    this.files.clear();
  }

  /** Empties the box and returns its content as a prompt to send. */
  take(kind: PromptKind, afterOffset: number): PendingPrompt {
    const prompt: PendingPrompt = { id: newId(), text: this.text.value, files: this.files.uploaded, mode: this.mode.value, kind, afterOffset, idempotencyKey: newId(), sentAt: Date.now() };
    this.#ownPending.add(prompt.id);
    batch(() => {
      this.pending.value = [...this.pending.value, { ...prompt, state: 'sending' }];
      this.text.value = '';
      this.error.value = '';
      this.files.clear();
    });
    this.#save();
    return prompt;
  }

  /** Sends the content of the box. */
  async send(session: OpenSession, kind: PromptKind): Promise<void> {
    const prompt = this.take(kind, session.view.value.offset);
    const sending = sendOverSession(session, prompt).catch((error: unknown) => {
      // No answer arrived. The prompt may still be visible in the journal.
      if (!(error instanceof Failure && error.code === 'CONNECTION_LOST' && hasArrived(session, prompt, new Set()))) throw error;
    });
    await this.#settle(prompt, sending);
  }

  /** Moves the content of the box to the draft of a session, whose composer sends it. */
  moveToSession(session: string): void {
    const prompt = this.take('prompt', 0);
    saveDraft(this.#userId, session, { ...emptyDraft(), pending: [prompt] });
    this.createdSession.value = undefined;
    this.remove(prompt.id);
    this.#save();
  }

  /**
   * Resends prompts that were pending when the page was closed, or checks whether they arrived. Call once the
   * session is loaded.
   */
  async checkArrivals(session: OpenSession): Promise<void> {
    const unconfirmed = this.pending.value.filter(({ state }) => state === 'checking');
    const isRecent = Date.now() - this.#draft.savedAt < RESEND_WITHOUT_ASKING_MS;
    const canResend = (prompt: PendingPrompt) => prompt.idempotencyKey !== undefined && isRecent && !isStale(prompt);
    for (const prompt of unconfirmed.filter(canResend)) {
      this.#setState(prompt.id, 'sending');
      void this.#settle(prompt, deliverOverHttp(session.id, prompt, this.#closed.signal));
    }
    const uncertain = unconfirmed.filter((prompt) => !canResend(prompt));
    if (uncertain.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, ARRIVAL_WAIT_MS));
    if (this.#closed.signal.aborted) return;
    const matched = new Set<string>();
    for (const prompt of uncertain) {
      if (hasArrived(session, prompt, matched)) this.remove(prompt.id);
      else this.#returnToBox(prompt, '');
    }
  }

  /** The session has ended: returns its pending prompts to the box. */
  returnPending(): void {
    for (const prompt of this.pending.value.filter(({ state }) => state === 'checking')) this.#returnToBox(prompt, '');
  }

  /** Puts a prompt back into the box, before the text that is there. */
  moveToBox(prompt: PendingPrompt): void {
    batch(() => {
      const current = this.text.value;
      this.text.value = current === '' ? prompt.text : `${prompt.text}\n\n${current}`;
      if (current === '') this.mode.value = prompt.mode;
      this.files.restore(prompt.files);
      this.remove(prompt.id);
    });
  }

  /** Forgets a prompt: it arrived or was discarded. */
  remove(id: string): void {
    this.pending.value = this.pending.value.filter((prompt) => prompt.id !== id);
  }

  async #settle(prompt: PendingPrompt, sending: Promise<unknown>): Promise<void> {
    try {
      await sending;
      if (this.#closed.signal.aborted) return;
      this.remove(prompt.id);
      this.#save();
    } catch (error) {
      // Closed meanwhile: the draft holds the prompt, and the next composer checks it.
      if (!this.#closed.signal.aborted) this.#returnToBox(prompt, explain(error));
    }
  }

  #returnToBox(prompt: PendingPrompt, error: string): void {
    if (this.text.value === '' && this.files.list.value.length === 0) {
      this.moveToBox(prompt);
      this.error.value = error;
    } else {
      this.#setState(prompt.id, 'unsent', error);
    }
  }

  #setState(id: string, state: SentPrompt['state'], error?: string): void {
    this.pending.value = this.pending.value.map((prompt) => (prompt.id === id ? { ...prompt, state, ...(error === undefined ? {} : { error }) } : prompt));
  }

  /** The content of the box as a comparable string. */
  #content(): string {
    const pending = this.pending.value.map(({ id }) => id);
    return JSON.stringify([this.text.value, this.files.uploaded, this.mode.value, pending, this.createdSession.value]);
  }

  readonly #save = () => {
    const content = this.#content();
    if (this.#closed.signal.aborted || content === this.#savedContent) return;
    this.#savedContent = content;
    const otherTabs = readDraft(this.#userId, this.draftId).pending.filter(({ id }) => !this.#ownPending.has(id));
    const own = this.pending.value.map(({ state, error, ...prompt }) => prompt);
    const createdSession = this.createdSession.value;
    saveDraft(this.#userId, this.draftId, { text: this.text.value, files: this.files.uploaded, mode: this.mode.value, pending: [...otherTabs, ...own], ...(createdSession ? { createdSession } : {}) });
  };

  /** Another tab saved the draft: show it here, unless this tab has unsaved changes. */
  readonly #onStorage = (event: StorageEvent) => {
    if (event.key !== draftKey(this.#userId, this.draftId) || this.#content() !== this.#savedContent || this.files.isUploading.value) return;
    const draft = readDraft(this.#userId, this.draftId);
    batch(() => {
      this.text.value = draft.text;
      this.mode.value = draft.mode;
      this.createdSession.value = draft.createdSession;
      this.files.clear();
      this.files.restore(draft.files);
    });
    this.#savedContent = this.#content();
  };
}

/** Whether a prompt is in the journal or in the queue. `matched`: entries that already stand for another prompt. */
function hasArrived(session: OpenSession, prompt: PendingPrompt, matched: Set<string>): boolean {
  const { entries, from } = session.timeline.value;
  const entry = entries.find((one) => (one.kind === 'prompt' || one.kind === 'note') && one.offset > prompt.afterOffset && one.text.trim() === prompt.text.trim() && !matched.has(one.key));
  if (entry) matched.add(entry.key);
  const { queue, messages } = session.view.value;
  const task = queue.find(({ taskId, text }) => prompt.text.startsWith(text) && text !== '' && !matched.has(taskId));
  if (!entry && task) matched.add(task.taskId);
  const isInHistory = prompt.afterOffset + 1 < from && messages.some(({ type, content }) => type === 'user' && content === prompt.text);
  return entry !== undefined || task !== undefined || isInHistory;
}
