// Session list: the user's sessions, kept up to date by polling.
//
// One request at a time. A change made here while a request is under way makes its answer stale: it is
// discarded and the request repeated.
import { computed, signal } from '@preact/signals';
import { Backoff, Failure } from '@switchboard/client';
import type { Http } from '@switchboard/client';
import { authState, request } from '../auth';
import { route } from '../route';
import { onTabMessage, postToTabs } from '../tab-channel';

export type Row = Http.SessionBody;

const PAGE_ROWS = 50;
/** A question may wait in a session that has not changed for long, so a larger page is polled now and then. */
const DEEP_PAGE_ROWS = 500;
const DEEP_POLL_MS = 120_000;
/** Poll intervals: while a session runs, otherwise, and while the page is hidden. */
const BUSY_POLL_MS = 3_000;
const IDLE_POLL_MS = 10_000;
const HIDDEN_POLL_MS = 20_000;
/** A command sent over a socket shows up in the list after about this long. */
const SETTLE_MS = 300;

export class SessionList {
  /** Last changed first. Unchanged rows stay the same objects. */
  readonly rows = signal<readonly Row[]>([]);
  /** `stale`: the latest poll failed. */
  readonly state = signal<'loading' | 'ready' | 'stale'>('loading');
  /** Whether there are more pages to load. */
  readonly more = signal<'some' | 'loading' | 'none'>('none');
  /** Sessions with a question that the user may answer. */
  readonly waiting = computed(() => this.rows.value.filter(isWaitingForMe));
  /** The open session, if it is too old to be among the rows. */
  readonly #openRow = signal<Row | undefined>(undefined);
  readonly #backoff = new Backoff({ baseMs: 2_000 });
  #nextPage: string | undefined;
  #deepPolledAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isPolling = false;
  #isStarted = false;
  /** Counts changes made here. */
  #version = 0;

  /** Starts polling; the returned function stops it. */
  start(): () => void {
    this.#isStarted = true;
    const refresh = () => this.refresh();
    const onVisible = () => (document.hidden ? undefined : refresh());
    const stopTabMessages = onTabMessage((message) => message.is === 'sessions' && refresh());
    addEventListener('focus', refresh);
    addEventListener('online', refresh);
    document.addEventListener('visibilitychange', onVisible);
    this.refresh();
    return () => {
      stopTabMessages();
      removeEventListener('focus', refresh);
      removeEventListener('online', refresh);
      document.removeEventListener('visibilitychange', onVisible);
      this.#stop();
    };
  }

  #stop(): void {
    this.#isStarted = false;
    this.#version += 1;
    clearTimeout(this.#timer);
    this.rows.value = [];
    this.state.value = 'loading';
    this.more.value = 'none';
    this.#openRow.value = undefined;
    this.#nextPage = undefined;
    this.#deepPolledAt = 0;
  }

  /** The row of a session, if known. */
  row(id: string): Row | undefined {
    const openRow = this.#openRow.value;
    return this.rows.value.find((row) => row.id === id) ?? (openRow?.id === id ? openRow : undefined);
  }

  /** Polls now, or as soon as the current request is answered. */
  refresh(): void {
    this.#version += 1;
    this.#schedule(0);
  }

  /** Polls in a moment. */
  refreshSoon(): void {
    this.#version += 1;
    this.#schedule(SETTLE_MS);
  }

  /** Shows a change before a poll brings it. */
  patchRow(id: string, changes: Partial<Row>): void {
    this.#version += 1;
    const change = (row: Row) => (row.id === id ? { ...row, ...changes } : row);
    this.rows.value = this.rows.value.map(change);
    if (this.#openRow.value?.id === id) this.#openRow.value = change(this.#openRow.value);
  }

  /** The user reads a session. */
  markRead(id: string): void {
    if (this.row(id)?.unread) this.patchRow(id, { unread: false });
  }

  /** A request of this tab changed a session. */
  rowChanged(id: string, changes: Partial<Row> | 'gone'): void {
    if (changes === 'gone') this.rows.value = this.rows.value.filter((row) => row.id !== id);
    else this.patchRow(id, changes);
    postToTabs({ is: 'sessions' });
    this.refresh();
  }

  /** A session has ended for the user. */
  forgetRow(id: string): void {
    this.#version += 1;
    this.rows.value = this.rows.value.filter((row) => row.id !== id);
    if (this.#openRow.value?.id === id) this.#openRow.value = undefined;
    this.#schedule(SETTLE_MS);
  }

  /** Loads the next page. */
  async loadMore(): Promise<void> {
    if (this.more.value !== 'some' || !this.#nextPage) return;
    this.more.value = 'loading';
    const signedInAs = authState.value;
    try {
      const page = await fetchPage(this.#nextPage);
      // Another user may have signed in meanwhile.
      if (!this.#isStarted || authState.value !== signedInAs) return;
      const knownIds = new Set(this.rows.value.map((row) => row.id));
      this.rows.value = sortRows([...this.rows.value, ...page.sessions.filter((row) => !knownIds.has(row.id))]);
      this.#setNext(page.next);
    } catch (error) {
      this.more.value = 'some';
      throw error;
    }
  }

  #setNext(next: string | null | undefined): void {
    this.#nextPage = next ?? undefined;
    this.more.value = this.#nextPage ? 'some' : 'none';
  }

  #schedule(waitMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isStarted) this.#timer = setTimeout(() => void this.#poll(), waitMs);
  }

  async #poll(): Promise<void> {
    // The current poll schedules the next one at once, because the version has changed.
    if (this.#isPolling) return;
    this.#isPolling = true;
    const version = this.#version;
    let wait: number;
    try {
      const page = await fetchPage();
      const openRow = await this.#fetchOpenRow(page.sessions);
      if (version === this.#version) this.#applyPage(page, openRow);
      if (version === this.#version && page.next) await this.#pollDeep(page.next, version);
      this.#backoff.reset();
      wait = this.#pollInterval();
    } catch (error) {
      if (version === this.#version) this.state.value = 'stale';
      wait = (error instanceof Failure ? error.retryAfterMs : undefined) ?? this.#backoff.next();
    }
    this.#isPolling = false;
    this.#schedule(version === this.#version || this.state.value === 'stale' ? wait : SETTLE_MS);
  }

  async #fetchOpenRow(rows: readonly Row[]): Promise<Row | undefined> {
    const current = route.value;
    if (current.page !== 'session' || rows.some((row) => row.id === current.id)) return undefined;
    try {
      return await request<Row>('GET', `/api/sessions/${encodeURIComponent(current.id)}`);
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return undefined;
      throw error;
    }
  }

  #applyPage(page: Http.SessionsBody, openRow: Row | undefined): void {
    const before = new Map(this.rows.value.map((row) => [row.id, row]));
    const isFirst = this.state.value === 'loading';
    const rows = mergePage(page, this.rows.value).map((row) => keepIfEqual(row, before.get(row.id)));
    const isSame = rows.length === this.rows.value.length && rows.every((row, index) => row === this.rows.value[index]);
    if (!isSame) this.rows.value = rows;
    this.#openRow.value = openRow;
    this.state.value = 'ready';
    // If more pages were loaded, the last of them already knows the next one.
    if (isFirst || !page.next || this.more.value === 'none') this.#setNext(page.next);
  }

  /** Finds waiting sessions beyond the newest page, and refreshes the older rows. */
  async #pollDeep(before: string, version: number): Promise<void> {
    if (Date.now() - this.#deepPolledAt < DEEP_POLL_MS) return;
    const page = await fetchPage(before, DEEP_PAGE_ROWS);
    if (version !== this.#version) return;
    this.#deepPolledAt = Date.now();
    this.rows.value = mergeDeepPage(this.rows.value, page);
  }

  #pollInterval(): number {
    if (document.hidden) return HIDDEN_POLL_MS;
    return this.rows.value.some(({ status }) => status === 'running' || status === 'waiting') ? BUSY_POLL_MS : IDLE_POLL_MS;
  }
}

function fetchPage(before?: string, limit = PAGE_ROWS): Promise<Http.SessionsBody> {
  const query = before === undefined ? '' : `&before=${encodeURIComponent(before)}`;
  return request('GET', `/api/sessions?limit=${limit}${query}`);
}

/** The newest page followed by the older rows. A row that should be on the page and is not was deleted. */
function mergePage(page: Http.SessionsBody, before: readonly Row[]): Row[] {
  const last = page.sessions.at(-1);
  if (!page.next || !last) return page.sessions;
  const knownIds = new Set(page.sessions.map((row) => row.id));
  return [...page.sessions, ...before.filter((row) => !knownIds.has(row.id) && row.updatedAt < last.updatedAt)];
}

/** The rows updated from an older page, plus its sessions that wait. */
function mergeDeepPage(rows: readonly Row[], page: Http.SessionsBody): Row[] {
  const fresh = new Map(page.sessions.map((row) => [row.id, row]));
  const newest = page.sessions[0]?.updatedAt ?? '';
  const oldest = page.next ? (page.sessions.at(-1)?.updatedAt ?? '') : '';
  const isThere = (row: Row) => fresh.has(row.id) || row.updatedAt > newest || row.updatedAt < oldest;
  const kept = rows.filter(isThere).map((row) => keepIfEqual(fresh.get(row.id) ?? row, row));
  const knownIds = new Set(kept.map((row) => row.id));
  return sortRows([...kept, ...page.sessions.filter((row) => row.status === 'waiting' && !knownIds.has(row.id))]);
}

function sortRows(rows: readonly Row[]): Row[] {
  return [...rows].sort((one, other) => (one.updatedAt === other.updatedAt ? 0 : one.updatedAt < other.updatedAt ? 1 : -1));
}

function keepIfEqual(row: Row, before: Row | undefined): Row {
  return before && JSON.stringify(before) === JSON.stringify(row) ? before : row;
}

function isWaitingForMe(row: Row): boolean {
  return row.status === 'waiting' && row.access !== 'viewer';
}

export const sessionList = new SessionList();
