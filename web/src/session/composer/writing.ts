// What somebody is writing in one box, and what has left it but not arrived. Nothing of it is lost:
// it is kept in the browser until the gateway has taken it.
import { batch, effect, signal } from '@preact/signals';
import { Failure, newId } from '@switchboard/client';
import type { Protocol } from '@switchboard/client';
import { explain, standing } from '../../account';
import type { OpenSession } from '../open';
import { deliver, isStale, say } from './delivery';
import { draftName, emptyDraft, keepDraft, readDraft } from './drafts';
import type { Draft, Letter, Manner } from './drafts';
import { Files } from './files';

/** Something that has left the box. `unsent`: it did not arrive, and the box is taken by something else. */
export interface Sent extends Letter {
  readonly state: 'sending' | 'checking' | 'unsent';
  readonly why?: string;
}

const KEEP_MS = 400;
/** Time for what was under way when the page was left to show up. */
const CHECK_MS = 1_000;
/** What was handed over longer ago is not sent without being asked. */
const HANDOVER_MS = 600_000;

/** The state of a box. */
export class Writing {
  readonly text = signal('');
  readonly mode = signal<Protocol.SubmitPrompt['mode']>('act');
  readonly letters = signal<readonly Sent[]>([]);
  /** What is wrong with what is in the box. */
  readonly error = signal('');
  readonly made = signal<Draft['made']>(undefined);
  readonly files: Files;
  readonly #user: string;
  readonly #stop = new AbortController();
  readonly #draft: Draft;
  /** Letters of this page; those of other tabs are theirs to drop. */
  readonly #own = new Set<string>();
  /** As it was last read or kept: a tab in which nothing was typed does not undo what another tab kept. */
  #kept: string;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stopKeeping: () => void;

  /** `place`: a session's id, or `new`; `session`: to which files are brought. */
  constructor(readonly place: string, session: () => Promise<string>) {
    const now = standing.value;
    this.#user = now.is === 'in' ? now.user.id : '';
    this.#draft = readDraft(this.#user, place);
    this.text.value = this.#draft.text;
    this.mode.value = this.#draft.mode;
    this.made.value = this.#draft.made;
    this.letters.value = this.#draft.letters.map((letter): Sent => ({ ...letter, state: 'checking' }));
    for (const { id } of this.#draft.letters) this.#own.add(id);
    this.files = new Files(session, this.#draft.files);
    this.#kept = this.#now();
    this.#stopKeeping = effect(() => {
      void [this.text.value, this.mode.value, this.files.list.value, this.letters.value, this.made.value];
      clearTimeout(this.#timer);
      this.#timer = setTimeout(this.#keep, KEEP_MS);
    });
    addEventListener('pagehide', this.#keep);
    document.addEventListener('visibilitychange', this.#keep);
    addEventListener('storage', this.#follow);
  }

  /** The box is gone. What is in it is kept. */
  close(): void {
    this.#keep();
    this.#stopKeeping();
    clearTimeout(this.#timer);
    this.#stop.abort();
    removeEventListener('pagehide', this.#keep);
    document.removeEventListener('visibilitychange', this.#keep);
    removeEventListener('storage', this.#follow);
    this.files.clear();
  }

  /** Takes what is in the box out of it, as something to send. */
  take(manner: Manner, after: number): Letter {
    const letter = { id: newId(), text: this.text.value, files: this.files.kept, mode: this.mode.value, manner, after, key: newId(), at: Date.now() };
    this.#own.add(letter.id);
    batch(() => {
      this.letters.value = [...this.letters.value, { ...letter, state: 'sending' }];
      this.text.value = '';
      this.error.value = '';
      this.files.clear();
    });
    this.#keep();
    return letter;
  }

  /** Sends what is in the box. */
  async send(session: OpenSession, manner: Manner): Promise<void> {
    const letter = this.take(manner, session.view.value.offset);
    const sending = say(session, letter).catch((error: unknown) => {
      // What became of it was not told. Perhaps it can be seen.
      if (!(error instanceof Failure && error.code === 'CONNECTION_LOST' && hasArrived(session, letter, new Set()))) throw error;
    });
    await this.#settle(letter, sending);
  }

  /** Hands what is in the box over to the box of a session, which sends it. */
  handOver(session: string): void {
    const letter = this.take('prompt', 0);
    keepDraft(this.#user, session, { ...emptyDraft(), letters: [letter] });
    this.made.value = undefined;
    this.drop(letter.id);
    this.#keep();
  }

  /** Finds out what became of what was under way when the page was left. The session is known by now. */
  async check(session: OpenSession): Promise<void> {
    const left = this.letters.value.filter(({ state }) => state === 'checking');
    const isFresh = Date.now() - this.#draft.at < HANDOVER_MS;
    const canRepeat = (letter: Letter) => letter.key !== undefined && isFresh && !isStale(letter);
    for (const letter of left.filter(canRepeat)) {
      this.#change(letter.id, 'sending');
      void this.#settle(letter, deliver(session.id, letter, this.#stop.signal));
    }
    const unknown = left.filter((letter) => !canRepeat(letter));
    if (unknown.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, CHECK_MS));
    if (this.#stop.signal.aborted) return;
    const seen = new Set<string>();
    for (const letter of unknown) {
      if (hasArrived(session, letter, seen)) this.drop(letter.id);
      else this.#giveBack(letter, '');
    }
  }

  /** The session is gone: what was on its way to it comes back. */
  returnAll(): void {
    for (const letter of this.letters.value.filter(({ state }) => state === 'checking')) this.#giveBack(letter, '');
  }

  /** Puts something that did not arrive into the box, before what is there. */
  reopen(letter: Letter): void {
    batch(() => {
      const now = this.text.value;
      this.text.value = now === '' ? letter.text : `${letter.text}\n\n${now}`;
      if (now === '') this.mode.value = letter.mode;
      this.files.restore(letter.files);
      this.drop(letter.id);
    });
  }

  /** It has arrived, or is not wanted any more. */
  drop(id: string): void {
    this.letters.value = this.letters.value.filter((letter) => letter.id !== id);
  }

  async #settle(letter: Letter, sending: Promise<unknown>): Promise<void> {
    try {
      await sending;
      if (this.#stop.signal.aborted) return;
      this.drop(letter.id);
      this.#keep();
    } catch (error) {
      // Left meanwhile: the draft has it, and whoever comes back finds out what became of it.
      if (!this.#stop.signal.aborted) this.#giveBack(letter, explain(error));
    }
  }

  #giveBack(letter: Letter, why: string): void {
    if (this.text.value === '' && this.files.list.value.length === 0) {
      this.reopen(letter);
      this.error.value = why;
    } else {
      this.#change(letter.id, 'unsent', why);
    }
  }

  #change(id: string, state: Sent['state'], why?: string): void {
    this.letters.value = this.letters.value.map((letter) => (letter.id === id ? { ...letter, state, ...(why === undefined ? {} : { why }) } : letter));
  }

  /** What is in the box now, to be compared. */
  #now(): string {
    const letters = this.letters.value.map(({ id }) => id);
    return JSON.stringify([this.text.value, this.files.kept, this.mode.value, letters, this.made.value]);
  }

  readonly #keep = () => {
    const now = this.#now();
    if (this.#stop.signal.aborted || now === this.#kept) return;
    this.#kept = now;
    const others = readDraft(this.#user, this.place).letters.filter(({ id }) => !this.#own.has(id));
    const letters = this.letters.value.map(({ state, why, ...letter }) => letter);
    const made = this.made.value;
    keepDraft(this.#user, this.place, { text: this.text.value, files: this.files.kept, mode: this.mode.value, letters: [...others, ...letters], ...(made ? { made } : {}) });
  };

  /** Another tab has kept something: it is shown here, too, unless something else is being written. */
  readonly #follow = (event: StorageEvent) => {
    if (event.key !== draftName(this.#user, this.place) || this.#now() !== this.#kept || this.files.isUploading.value) return;
    const draft = readDraft(this.#user, this.place);
    batch(() => {
      this.text.value = draft.text;
      this.mode.value = draft.mode;
      this.made.value = draft.made;
      this.files.clear();
      this.files.restore(draft.files);
    });
    this.#kept = this.#now();
  };
}

/** Whether it stands in the conversation or in the queue. `seen` are those that stand for another letter. */
function hasArrived(session: OpenSession, letter: Letter, seen: Set<string>): boolean {
  const { entries, from } = session.timeline.value;
  const entry = entries.find((one) => (one.kind === 'prompt' || one.kind === 'note') && one.offset > letter.after && one.text.trim() === letter.text.trim() && !seen.has(one.key));
  if (entry) seen.add(entry.key);
  const { queue, messages } = session.view.value;
  const task = queue.find(({ taskId, text }) => letter.text.startsWith(text) && text !== '' && !seen.has(taskId));
  if (!entry && task) seen.add(task.taskId);
  const isOlder = letter.after + 1 < from && messages.some(({ type, content }) => type === 'user' && content === letter.text);
  return entry !== undefined || task !== undefined || isOlder;
}
