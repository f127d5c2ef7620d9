// The session that is open: one seat in it, what is shown of it, and what can be done in it.
import { batch, computed, signal } from '@preact/signals';
import type { Protocol, Reply, SendOptions, Session, SessionEvent, View } from '@switchboard/client';
import { Failure } from '@switchboard/client';
import { account, noticeEnd, request } from '../account';
import { text } from '../text';
import { emptyTimeline, foldAll, join, ofState } from './timeline';
import type { Timeline } from './timeline';

/** The line to the gateway, as a person is told of it. */
export type Connection =
  | { is: 'connecting' }
  | { is: 'live' }
  /** The line is there, but nothing has come for longer than it should. */
  | { is: 'slow' }
  /** Back again; `missed` events came meanwhile. Becomes `live` after a moment. */
  | { is: 'resumed'; missed: number }
  /** `retryAt`: in milliseconds since 1970. */
  | { is: 'reconnecting'; retryAt?: number }
  | { is: 'offline' }
  | { is: 'ended'; failure: Failure };

/** How many events are loaded at a time. */
const PAGE = 500;
/** How long it is said that the line is back. */
const RESUMED_MS = 4_000;
/** So many notices are kept. */
const NOTICES = 20;

/** A session that is open on the screen. */
export class OpenSession {
  readonly connection = signal<Connection>({ is: 'connecting' });
  /** The state of the session; another object after each change. At most one change per frame. */
  readonly view;
  readonly timeline = signal<Timeline>(emptyTimeline());
  /** Older events: whether there are some, and whether they are being loaded. */
  readonly older = signal<'loading' | 'some' | 'none' | 'failed'>('loading');
  /** The first page of the conversation is there. */
  readonly isReady = signal(false);
  /** From an administrator, to everybody. */
  readonly notices = signal<readonly (Protocol.Notice & { at: number })[]>([]);
  readonly limits = signal<Protocol.AckLimits | undefined>(undefined);
  readonly agent = signal('');
  /** Is a run under way? */
  readonly isRunning;
  readonly #session: Session;
  readonly #mine = account();
  #waiting: SessionEvent[] = [];
  #isDue = false;
  /** The first page is being read; what comes meanwhile waits for it. */
  #isBeginning = true;
  /** The journal could not be read: only what the state has is shown. */
  #isMakeshift = false;
  #wasOpen = false;
  #loading = 0;

  constructor(readonly id: string) {
    const session = this.#mine.join(id);
    this.#session = session;
    const view = signal<View>(session.store.view);
    this.view = view;
    this.isRunning = computed(() => view.value.currentTask?.status === 'running' || view.value.currentTask?.status === 'starting');
    session.store.subscribe(() => this.#draw());
    session.on('event', (event) => {
      this.#waiting.push(event);
      this.#draw();
    });
    session.on('snapshot', (state) => void this.#begin(state));
    session.on('open', (ack) => this.#opened(ack));
    session.on('status', () => this.#lineChanged());
    session.on('slow', (isSlow) => {
      const now = this.connection.value.is;
      if (now === 'live' || now === 'resumed' || now === 'slow') this.connection.value = { is: isSlow ? 'slow' : 'live' };
    });
    session.on('notice', (notice) => (this.notices.value = [...this.notices.value, { ...notice, at: Date.now() }].slice(-NOTICES)));
    session.on('ended', (failure) => {
      this.connection.value = { is: 'ended', failure };
      noticeEnd(this.#mine, failure);
    });
    addEventListener('offline', this.#lineChanged);
    addEventListener('online', this.#lineChanged);
  }

  /** Leaves it. */
  close(): void {
    removeEventListener('offline', this.#lineChanged);
    removeEventListener('online', this.#lineChanged);
    this.#loading += 1;
    this.#session.close();
  }

  /** Tries to connect at once instead of waiting on. */
  hurry(): void {
    this.#session.hurry();
  }

  /** Any command of the protocol. */
  send<T extends keyof Protocol.ClientPayloads>(type: T, payload: Protocol.ClientPayloads[T], options: SendOptions = {}): Promise<Reply<T>> {
    return this.#session.send(type, payload, options);
  }

  prompt(text: string, more: Partial<Omit<Protocol.SubmitPrompt, 'text'>> = {}) {
    return this.#session.prompt(text, more);
  }

  cancel(): Promise<Protocol.Done> {
    return this.#session.cancel();
  }

  answer(questionId: string, said: Protocol.SaidOnce & { remember?: boolean; reason?: string }): Promise<Protocol.Done> {
    return this.#session.answer(questionId, said);
  }

  /** Whether the agent of this session can do that, in the words of `capabilities`. */
  can(ability: string): boolean {
    return this.view.value.capabilities.includes(ability);
  }

  /** Loads the page before the first entry. */
  async loadOlder(): Promise<void> {
    if (this.older.value === 'loading' || this.older.value === 'none') return;
    if (this.#isMakeshift) return this.#begin(this.#session.store.state);
    this.older.value = 'loading';
    const turn = this.#loading;
    const { from } = this.timeline.value;
    try {
      const events = await this.#before(from);
      let page = foldAll(emptyTimeline(), events);
      // Pieces were joined since, across the border: what is newer is read again.
      if (page.offset >= from) page = await this.#onwards(page);
      if (turn !== this.#loading) return;
      batch(() => {
        const now = this.timeline.value;
        this.timeline.value = page.offset >= now.offset ? page : join(page, now);
        this.older.value = events.length > 0 && this.timeline.value.from > 1 ? 'some' : 'none';
      });
    } catch {
      if (turn === this.#loading) this.older.value = 'failed';
    }
  }

  /** A state stands in the place of what came before: the newest page of the journal is read anew. */
  async #begin(state: Protocol.FullState): Promise<void> {
    const turn = (this.#loading += 1);
    this.#isBeginning = true;
    this.older.value = 'loading';
    this.#waiting = [];
    let begun = ofState(state);
    let isMakeshift = false;
    try {
      const events = state.offset === 0 ? [] : await this.#before(state.offset + 1);
      if (events.length > 0) begun = foldAll(emptyTimeline(), events);
    } catch {
      isMakeshift = true;
    }
    if (turn !== this.#loading) return;
    batch(() => {
      this.#isMakeshift = isMakeshift;
      this.timeline.value = begun;
      this.older.value = isMakeshift ? 'failed' : begun.from > 1 ? 'some' : 'none';
      this.isReady.value = true;
      this.#isBeginning = false;
      this.#drawNow();
    });
  }

  /** The last page of events before an offset. */
  async #before(offset: number): Promise<SessionEvent[]> {
    const text = await lines(`/api/sessions/${this.id}/events?before=${offset}&limit=${PAGE}`);
    return text.map((line) => JSON.parse(line) as SessionEvent);
  }

  /** A part of the conversation with everything that came after it, as far as it is known here. */
  async #onwards(page: Timeline): Promise<Timeline> {
    let read = page;
    while (read.offset < this.timeline.value.offset) {
      const text = await lines(`/api/sessions/${this.id}/events?after=${read.offset}&limit=${PAGE}`);
      if (text.length === 0) break;
      read = foldAll(read, text.map((line) => JSON.parse(line) as SessionEvent));
    }
    return read;
  }

  #opened(ack: Protocol.ConnectionAck): void {
    this.limits.value = ack.limits;
    this.agent.value = ack.agent;
    const missed = ack.offset - (this.#session.cursor?.offset ?? ack.offset);
    if (!this.#wasOpen) {
      this.#wasOpen = true;
      this.connection.value = { is: 'live' };
      return;
    }
    this.connection.value = { is: 'resumed', missed };
    setTimeout(() => {
      if (this.connection.value.is === 'resumed') this.connection.value = { is: 'live' };
    }, RESUMED_MS);
  }

  readonly #lineChanged = () => {
    switch (this.#session.status) {
      case 'open':
      case 'ended':
        return;
      default:
    }
    if (!navigator.onLine) this.connection.value = { is: 'offline' };
    else if (!this.#wasOpen) this.connection.value = { is: 'connecting' };
    else {
      const { retryAt } = this.#session;
      this.connection.value = { is: 'reconnecting', ...(retryAt === undefined ? {} : { retryAt }) };
    }
  };

  /** Draws with the next frame, however much comes until then. */
  #draw(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    // A hidden page has no frames, and is to know all the same when a question waits; so is one that is hidden
    // before the frame comes.
    setTimeout(() => this.#isDue && this.#drawNow(), document.hidden ? 100 : 500);
    if (!document.hidden) requestAnimationFrame(() => this.#isDue && this.#drawNow());
  }

  #drawNow(): void {
    this.#isDue = false;
    batch(() => {
      this.view.value = this.#session.store.view;
      if (this.#isBeginning) return;
      const waiting = this.#waiting;
      this.#waiting = [];
      if (waiting.length > 0) this.timeline.value = foldAll(this.timeline.value, waiting);
    });
  }
}

/** What the gateway answers to whoever is signed in, as it is. */
export async function ask(path: string): Promise<Response> {
  return account().login.fetch(path);
}

/** The lines of an NDJSON answer. */
async function lines(path: string): Promise<string[]> {
  const answer = await ask(path);
  return (await answer.text()).split('\n').filter((line) => line !== '');
}

/** Branches off a session after one of its events; answers the id of the new one. */
export async function branch(session: OpenSession, fromOffset: number): Promise<string> {
  const { sessionId } = await session.send('BRANCH_SESSION', { fromOffset });
  if (!sessionId) throw new Failure('INTERNAL', text.common.fault);
  return sessionId;
}

/** Makes a session. */
export async function create(agent: string | undefined): Promise<string> {
  const made = await request<{ id: string }>('POST', '/api/sessions', agent === undefined ? {} : { agent });
  return made.id;
}
