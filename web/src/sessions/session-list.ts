// The sessions of whoever is signed in, kept up to date by asking for them again.
//
// One request at a time. What was changed here while one was under way makes its answer worthless: it is
// thrown away, and asked for again.
import { computed, signal } from '@preact/signals';
import { Backoff, Failure } from '@switchboard/client';
import type { Http } from '@switchboard/client';
import { request, standing } from '../account';
import { place } from '../place';
import { onTabs, tellTabs } from '../tabs';

/** A session in the list. */
export type Row = Http.SessionBody;

const PAGE = 50;
/** A question may wait in a session that nobody touched for long: now and then, more are looked through. */
const DEEP_PAGE = 500;
const DEEP_MS = 120_000;
/** How often to ask: while something goes on, otherwise, and while nobody looks. */
const BUSY_MS = 3_000;
const CALM_MS = 10_000;
const HIDDEN_MS = 20_000;
/** What was just said to the gateway in another way is in the list a moment later. */
const SOON_MS = 300;

export class SessionList {
  /** The newest change first. What stayed the same is the same object. */
  readonly rows = signal<readonly Row[]>([]);
  /** `away`: the rows are those of a while ago. */
  readonly state = signal<'loading' | 'ready' | 'away'>('loading');
  /** Whether there are more than those that were loaded. */
  readonly more = signal<'some' | 'loading' | 'none'>('none');
  /** Those in which the agent waits for an answer that is mine to give. */
  readonly waiting = computed(() => this.rows.value.filter(isMineToAnswer));
  /** The session on the screen, if it is too old to be among the rows. */
  readonly #single = signal<Row | undefined>(undefined);
  readonly #backoff = new Backoff({ baseMs: 2_000 });
  #next: string | undefined;
  #lookedDeep = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  #isRunning = false;
  /** How often something was changed here. */
  #version = 0;

  /** Begins, until the returned function is called. */
  start(): () => void {
    this.#isRunning = true;
    const now = () => this.refresh();
    const seen = () => (document.hidden ? undefined : now());
    const leave = onTabs((news) => news.is === 'sessions' && now());
    addEventListener('focus', now);
    addEventListener('online', now);
    document.addEventListener('visibilitychange', seen);
    this.refresh();
    return () => {
      leave();
      removeEventListener('focus', now);
      removeEventListener('online', now);
      document.removeEventListener('visibilitychange', seen);
      this.#stop();
    };
  }

  #stop(): void {
    this.#isRunning = false;
    this.#version += 1;
    clearTimeout(this.#timer);
    this.rows.value = [];
    this.state.value = 'loading';
    this.more.value = 'none';
    this.#single.value = undefined;
    this.#next = undefined;
    this.#lookedDeep = 0;
  }

  /** The row of a session, if it is known. */
  row(id: string): Row | undefined {
    const single = this.#single.value;
    return this.rows.value.find((row) => row.id === id) ?? (single?.id === id ? single : undefined);
  }

  /** Asks now, or as soon as the request under way is answered. */
  refresh(): void {
    this.#version += 1;
    this.#schedule(0);
  }

  /** Asks in a moment. */
  refreshSoon(): void {
    this.#version += 1;
    this.#schedule(SOON_MS);
  }

  /** Shows a change before the gateway tells of it. */
  patch(id: string, changes: Partial<Row>): void {
    this.#version += 1;
    const change = (row: Row) => (row.id === id ? { ...row, ...changes } : row);
    this.rows.value = this.rows.value.map(change);
    if (this.#single.value?.id === id) this.#single.value = change(this.#single.value);
  }

  /** Something was changed by a request of this tab. */
  changed(id: string, changes: Partial<Row> | 'gone'): void {
    if (changes === 'gone') this.rows.value = this.rows.value.filter((row) => row.id !== id);
    else this.patch(id, changes);
    tellTabs({ is: 'sessions' });
    this.refresh();
  }

  /** Loads the next page. */
  async loadMore(): Promise<void> {
    if (this.more.value !== 'some' || !this.#next) return;
    this.more.value = 'loading';
    const mine = standing.value;
    try {
      const page = await ask(this.#next);
      // Somebody else may be signed in by now.
      if (!this.#isRunning || standing.value !== mine) return;
      const known = new Set(this.rows.value.map((row) => row.id));
      this.rows.value = sorted([...this.rows.value, ...page.sessions.filter((row) => !known.has(row.id))]);
      this.#setNext(page.next);
    } catch (error) {
      this.more.value = 'some';
      throw error;
    }
  }

  #setNext(next: string | null | undefined): void {
    this.#next = next ?? undefined;
    this.more.value = this.#next ? 'some' : 'none';
  }

  #schedule(waitMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isRunning) this.#timer = setTimeout(() => void this.#poll(), waitMs);
  }

  async #poll(): Promise<void> {
    // It comes back here when it is answered, because the version has changed.
    if (this.#isAsking) return;
    this.#isAsking = true;
    const version = this.#version;
    let wait: number;
    try {
      const page = await ask();
      const single = await this.#askSingle(page.sessions);
      if (version === this.#version) this.#take(page, single);
      if (version === this.#version && page.next) await this.#lookDeep(page.next, version);
      this.#backoff.reset();
      wait = this.#pace();
    } catch (error) {
      if (version === this.#version) this.state.value = 'away';
      wait = (error instanceof Failure ? error.retryAfterMs : undefined) ?? this.#backoff.next();
    }
    this.#isAsking = false;
    this.#schedule(version === this.#version || this.state.value === 'away' ? wait : SOON_MS);
  }

  async #askSingle(rows: readonly Row[]): Promise<Row | undefined> {
    const at = place.value;
    if (at.page !== 'session' || rows.some((row) => row.id === at.id)) return undefined;
    try {
      return await request<Row>('GET', `/api/sessions/${encodeURIComponent(at.id)}`);
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return undefined;
      throw error;
    }
  }

  #take(page: Http.SessionsBody, single: Row | undefined): void {
    const before = new Map(this.rows.value.map((row) => [row.id, row]));
    const isFirst = this.state.value === 'loading';
    const rows = merge(page, this.rows.value).map((row) => keep(row, before.get(row.id)));
    const isSame = rows.length === this.rows.value.length && rows.every((row, place) => row === this.rows.value[place]);
    if (!isSame) this.rows.value = rows;
    this.#single.value = single;
    this.state.value = 'ready';
    // Of the older pages, the last one that was loaded knows what comes next.
    if (isFirst || !page.next || this.more.value === 'none') this.#setNext(page.next);
  }

  /** Finds those beyond the newest page that wait, and refreshes those that were loaded. */
  async #lookDeep(before: string, version: number): Promise<void> {
    if (Date.now() - this.#lookedDeep < DEEP_MS) return;
    const page = await ask(before, DEEP_PAGE);
    if (version !== this.#version) return;
    this.#lookedDeep = Date.now();
    this.rows.value = deepened(this.rows.value, page);
  }

  #pace(): number {
    if (document.hidden) return HIDDEN_MS;
    return this.rows.value.some(({ status }) => status === 'running' || status === 'waiting') ? BUSY_MS : CALM_MS;
  }
}

function ask(before?: string, limit = PAGE): Promise<Http.SessionsBody> {
  const query = before === undefined ? '' : `&before=${encodeURIComponent(before)}`;
  return request('GET', `/api/sessions?limit=${limit}${query}`);
}

/** The newest page before the older ones. What should be in it and is not has gone. */
function merge(page: Http.SessionsBody, before: readonly Row[]): Row[] {
  const last = page.sessions.at(-1);
  if (!page.next || !last) return page.sessions;
  const known = new Set(page.sessions.map((row) => row.id));
  return [...page.sessions, ...before.filter((row) => !known.has(row.id) && row.updatedAt < last.updatedAt)];
}

/** With the rows of an older page as they are now, and those of it that wait. */
function deepened(rows: readonly Row[], page: Http.SessionsBody): Row[] {
  const fresh = new Map(page.sessions.map((row) => [row.id, row]));
  const newest = page.sessions[0]?.updatedAt ?? '';
  const oldest = page.next ? (page.sessions.at(-1)?.updatedAt ?? '') : '';
  const isThere = (row: Row) => fresh.has(row.id) || row.updatedAt > newest || row.updatedAt < oldest;
  const kept = rows.filter(isThere).map((row) => keep(fresh.get(row.id) ?? row, row));
  const known = new Set(kept.map((row) => row.id));
  return sorted([...kept, ...page.sessions.filter((row) => row.status === 'waiting' && !known.has(row.id))]);
}

function sorted(rows: readonly Row[]): Row[] {
  return [...rows].sort((one, other) => (one.updatedAt === other.updatedAt ? 0 : one.updatedAt < other.updatedAt ? 1 : -1));
}

function keep(row: Row, before: Row | undefined): Row {
  return before && JSON.stringify(before) === JSON.stringify(row) ? before : row;
}

function isMineToAnswer(row: Row): boolean {
  return row.status === 'waiting' && row.access !== 'viewer';
}

/** The sessions of whoever is signed in. */
export const list = new SessionList();
