// Session search: searches the messages of all sessions.
//
// The gateway allows each user one search at a time, so only one request is open; a newer query is sent when
// it is answered.
import { signal } from '@preact/signals';
import { Failure } from '@switchboard/client';
import type { Http } from '@switchboard/client';
import { explain, request } from '../auth';
import type { Row } from './session-list';

const DEBOUNCE_MS = 250;
const BUSY_RETRY_MS = 1_000;

export type SearchState =
  | { is: 'none' }
  | { is: 'searching'; isBusy: boolean; rows: readonly Row[] }
  | { is: 'found'; rows: readonly Row[]; hasMore: boolean }
  | { is: 'failed'; error: string };

export class SessionSearch {
  readonly query = signal('');
  readonly state = signal<SearchState>({ is: 'none' });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isSearching = false;

  /** The user typed. */
  setQuery(query: string): void {
    this.query.value = query;
    clearTimeout(this.#timer);
    if (query.trim() === '') {
      this.state.value = { is: 'none' };
      return;
    }
    this.#setSearching(false);
    this.#timer = setTimeout(() => void this.#search(), DEBOUNCE_MS);
  }

  #setSearching(isBusy: boolean): void {
    const previous = this.state.value;
    this.state.value = { is: 'searching', isBusy, rows: 'rows' in previous ? previous.rows : [] };
  }

  async #search(): Promise<void> {
    if (this.#isSearching) return;
    const query = this.query.value.trim();
    const isCurrent = () => query === this.query.value.trim();
    this.#isSearching = true;
    let retryInMs: number | undefined;
    try {
      const page = await request<Http.SessionsBody>('GET', `/api/sessions?q=${encodeURIComponent(query)}`);
      if (isCurrent()) this.state.value = { is: 'found', rows: page.sessions, hasMore: Boolean(page.next) };
    } catch (error) {
      if (isCurrent() && error instanceof Failure && error.code === 'BUSY') {
        this.#setSearching(true);
        retryInMs = error.retryAfterMs ?? BUSY_RETRY_MS;
      } else if (isCurrent()) {
        this.state.value = { is: 'failed', error: explain(error) };
      }
    }
    this.#isSearching = false;
    if (!isCurrent() && this.query.value.trim() !== '') retryInMs = 0;
    if (retryInMs === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#search(), retryInMs);
  }
}
