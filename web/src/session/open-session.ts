// Open session: a joined session as signals for the page, with its conversation and commands.
import { batch, computed, signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import type { Protocol, Reply, SendOptions, Session, SessionEvent, View } from '@switchboard/client';
import { Failure } from '@switchboard/client';
import { account, request, signOutIfEnded } from '../auth';
import { text } from '../text';
import { emptyTimeline, foldAll, join, timelineOfState } from './timeline';
import type { Timeline } from './timeline';

/** The state of the connection, as shown to the user. */
export type ConnectionState =
  | { is: 'connecting' }
  | { is: 'live' }
  /** Connected, but an answer is overdue. */
  | { is: 'slow' }
  /** Reconnected; `missed` events arrived meanwhile. Becomes `live` after a moment. */
  | { is: 'resumed'; missed: number }
  /** `retryAt`: in milliseconds since 1970. */
  | { is: 'reconnecting'; retryAt?: number }
  | { is: 'offline' }
  | { is: 'ended'; failure: Failure };

/** Events per page. */
const PAGE_EVENTS = 500;
const RESUMED_SHOWN_MS = 4_000;
const MAX_NOTICES = 20;

export class OpenSession {
  readonly connection = signal<ConnectionState>({ is: 'connecting' });
  /** The state of the session. Replaced at most once per frame. */
  readonly view;
  readonly timeline = signal<Timeline>(emptyTimeline());
  /** Whether there are older events to load. */
  readonly older = signal<'loading' | 'some' | 'none' | 'failed'>('loading');
  /** The first page of the conversation is loaded. */
  readonly isReady = signal(false);
  /** Notices from administrators. */
  readonly notices = signal<readonly (Protocol.Notice & { at: number })[]>([]);
  readonly limits = signal<Protocol.AckLimits | undefined>(undefined);
  readonly agent = signal('');
  readonly isRunning;
  /** Counts requests to show the oldest open question. */
  readonly questionWanted = signal(0);
  /** Connected, and neither slow nor reconnecting. */
  readonly isLive = computed(() => this.connection.value.is === 'live' || this.connection.value.is === 'resumed');
  readonly #session: Session;
  readonly #account = account();
  #pendingEvents: SessionEvent[] = [];
  #isDrawScheduled = false;
  /** The first page is being loaded; events that arrive meanwhile are held back. */
  #isLoadingFirstPage = true;
  /** The journal could not be read: the timeline shows only what the state contains. */
  #isStateOnly = false;
  #wasOpen = false;
  #loadCount = 0;

  constructor(readonly id: string) {
    const session = this.#account.join(id);
    this.#session = session;
    const view = signal<View>(session.store.view);
    this.view = view;
    this.isRunning = computed(() => view.value.currentTask?.status === 'running' || view.value.currentTask?.status === 'starting');
    session.store.subscribe(() => this.#scheduleDraw());
    session.on('event', (event) => {
      this.#pendingEvents.push(event);
      this.#scheduleDraw();
    });
    session.on('snapshot', (state) => void this.#loadFirstPage(state));
    session.on('open', (ack) => this.#acknowledged(ack));
    session.on('status', () => this.#connectionChanged());
    session.on('slow', (isSlow) => {
      const current = this.connection.value.is;
      if (current === 'live' || current === 'resumed' || current === 'slow') this.connection.value = { is: isSlow ? 'slow' : 'live' };
    });
    session.on('notice', (notice) => (this.notices.value = [...this.notices.value, { ...notice, at: Date.now() }].slice(-MAX_NOTICES)));
    session.on('ended', (failure) => {
      this.connection.value = { is: 'ended', failure };
      signOutIfEnded(this.#account, failure);
    });
    addEventListener('offline', this.#connectionChanged);
    addEventListener('online', this.#connectionChanged);
  }

  /** Leaves the session. */
  close(): void {
    removeEventListener('offline', this.#connectionChanged);
    removeEventListener('online', this.#connectionChanged);
    this.#loadCount += 1;
    this.#session.close();
  }

  /** Reconnects at once instead of waiting for the next attempt. */
  reconnectNow(): void {
    this.#session.reconnectNow();
  }

  /** Sends any command of the protocol. */
  send<T extends keyof Protocol.ClientPayloads>(type: T, payload: Protocol.ClientPayloads[T], options: SendOptions = {}): Promise<Reply<T>> {
    return this.#session.send(type, payload, options);
  }

  cancel(): Promise<Protocol.Done> {
    return this.#session.cancel();
  }

  answer(questionId: string, answer: Protocol.SaidOnce & { remember?: boolean; reason?: string }): Promise<Protocol.Done> {
    return this.#session.answer(questionId, answer);
  }

  /** Whether the session's agent has a capability. */
  can(capability: string): boolean {
    return this.view.value.capabilities.includes(capability);
  }

  /** Loads the page before the first entry. */
  async loadOlder(): Promise<void> {
    if (this.older.value === 'loading' || this.older.value === 'none') return;
    if (this.#isStateOnly) return this.#loadFirstPage(this.#session.store.state);
    this.older.value = 'loading';
    const loadCount = this.#loadCount;
    const { from } = this.timeline.value;
    try {
      const events = await this.#eventsBefore(from);
      let page = foldAll(emptyTimeline(), events);
      // Chunks were merged across the page boundary since: read everything newer again.
      if (page.offset >= from) page = await this.#readForward(page);
      if (loadCount !== this.#loadCount) return;
      batch(() => {
        const current = this.timeline.value;
        this.timeline.value = page.offset >= current.offset ? page : join(page, current);
        this.older.value = events.length > 0 && this.timeline.value.from > 1 ? 'some' : 'none';
      });
    } catch {
      if (loadCount === this.#loadCount) this.older.value = 'failed';
    }
  }

  /** Loads older pages until an offset is loaded. False if it is out of reach. */
  async loadThrough(offset: number): Promise<boolean> {
    await this.#whenReady();
    while (this.timeline.value.from > offset) {
      if (this.older.value === 'loading') await untilChanged(this.older);
      else if (this.older.value === 'none') return false;
      else await this.loadOlder();
      if (this.older.value === 'failed') return false;
    }
    return true;
  }

  async #whenReady(): Promise<void> {
    while (!this.isReady.value) await untilChanged(this.isReady);
  }

  /** A state replaced the events: loads the newest page of the journal. */
  async #loadFirstPage(state: Protocol.FullState): Promise<void> {
    const loadCount = (this.#loadCount += 1);
    this.#isLoadingFirstPage = true;
    this.older.value = 'loading';
    this.#pendingEvents = [];
    let timeline = timelineOfState(state);
    let isStateOnly = false;
    try {
      const events = state.offset === 0 ? [] : await this.#eventsBefore(state.offset + 1);
      if (events.length > 0) timeline = foldAll(emptyTimeline(), events);
    } catch {
      isStateOnly = true;
    }
    if (loadCount !== this.#loadCount) return;
    batch(() => {
      this.#isStateOnly = isStateOnly;
      this.timeline.value = timeline;
      this.older.value = isStateOnly ? 'failed' : timeline.from > 1 ? 'some' : 'none';
      this.isReady.value = true;
      this.#isLoadingFirstPage = false;
      this.#draw();
    });
  }

  /** The last page of events before an offset. */
  async #eventsBefore(offset: number): Promise<SessionEvent[]> {
    const text = await fetchLines(`/api/sessions/${this.id}/events?before=${offset}&limit=${PAGE_EVENTS}`);
    return text.map((line) => JSON.parse(line) as SessionEvent);
  }

  /** Extends a page with all later events, up to what is already known. */
  async #readForward(page: Timeline): Promise<Timeline> {
    let read = page;
    while (read.offset < this.timeline.value.offset) {
      const text = await fetchLines(`/api/sessions/${this.id}/events?after=${read.offset}&limit=${PAGE_EVENTS}`);
      if (text.length === 0) break;
      read = foldAll(read, text.map((line) => JSON.parse(line) as SessionEvent));
    }
    return read;
  }

  #acknowledged(ack: Protocol.ConnectionAck): void {
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
    }, RESUMED_SHOWN_MS);
  }

  readonly #connectionChanged = () => {
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

  /** Draws on the next frame, however much arrives before it. */
  #scheduleDraw(): void {
    if (this.#isDrawScheduled) return;
    this.#isDrawScheduled = true;
    // The timer covers hidden pages, which get no frames but must still notice questions.
    setTimeout(() => this.#isDrawScheduled && this.#draw(), document.hidden ? 100 : 500);
    if (!document.hidden) requestAnimationFrame(() => this.#isDrawScheduled && this.#draw());
  }

  #draw(): void {
    this.#isDrawScheduled = false;
    batch(() => {
      this.view.value = this.#session.store.view;
      if (this.#isLoadingFirstPage) return;
      const events = this.#pendingEvents;
      this.#pendingEvents = [];
      if (events.length > 0) this.timeline.value = foldAll(this.timeline.value, events);
    });
  }
}

/** Resolves when a signal has another value. */
function untilChanged(changing: ReadonlySignal<unknown>): Promise<void> {
  return new Promise((resolve) => {
    let isFirst = true;
    const stop = changing.subscribe(() => {
      if (isFirst) return void (isFirst = false);
      queueMicrotask(() => stop());
      resolve();
    });
  });
}

/** A request as the signed-in user, with the raw response. */
export async function fetchFromGateway(path: string): Promise<Response> {
  return account().login.fetch(path);
}

/** The lines of an NDJSON response. */
async function fetchLines(path: string): Promise<string[]> {
  const answer = await fetchFromGateway(path);
  return (await answer.text()).split('\n').filter((line) => line !== '');
}

/** Branches a session after an event; returns the id of the new session. */
export async function branchSession(session: OpenSession, fromOffset: number): Promise<string> {
  const { sessionId } = await session.send('BRANCH_SESSION', { fromOffset });
  if (!sessionId) throw new Failure('INTERNAL', text.common.fault);
  return sessionId;
}

/** Creates a session; returns its id. */
export async function createSession(agent: string | undefined): Promise<string> {
  const created = await request<{ id: string }>('POST', '/api/sessions', agent === undefined ? {} : { agent });
  return created.id;
}
