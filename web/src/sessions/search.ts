// Searching in what was said.
//
// The gateway lets everybody search once at a time. So one request is under way at most; when it is
// answered and something else is wanted by then, that is asked for.
import { signal } from '@preact/signals';
import { Failure } from '@switchboard/client';
import type { Http } from '@switchboard/client';
import { explain, request } from '../account';
import type { Row } from './list';

/** How long after the last key the search begins. */
const PAUSE_MS = 250;
const BUSY_MS = 1_000;

/** What a search has come to. */
export type Found =
  | { is: 'none' }
  | { is: 'searching'; isBusy: boolean; rows: readonly Row[] }
  | { is: 'found'; rows: readonly Row[]; hasMore: boolean }
  | { is: 'failed'; why: string };

export class Search {
  readonly words = signal('');
  readonly found = signal<Found>({ is: 'none' });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;

  /** Somebody has typed. */
  want(words: string): void {
    this.words.value = words;
    clearTimeout(this.#timer);
    if (words.trim() === '') {
      this.found.value = { is: 'none' };
      return;
    }
    this.#searching(false);
    this.#timer = setTimeout(() => void this.#ask(), PAUSE_MS);
  }

  #searching(isBusy: boolean): void {
    const before = this.found.value;
    this.found.value = { is: 'searching', isBusy, rows: 'rows' in before ? before.rows : [] };
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return;
    const words = this.words.value.trim();
    const isWanted = () => words === this.words.value.trim();
    this.#isAsking = true;
    let again: number | undefined;
    try {
      const page = await request<Http.SessionsBody>('GET', `/api/sessions?q=${encodeURIComponent(words)}`);
      if (isWanted()) this.found.value = { is: 'found', rows: page.sessions, hasMore: Boolean(page.next) };
    } catch (error) {
      if (isWanted() && error instanceof Failure && error.code === 'BUSY') {
        this.#searching(true);
        again = error.retryAfterMs ?? BUSY_MS;
      } else if (isWanted()) {
        this.found.value = { is: 'failed', why: explain(error) };
      }
    }
    this.#isAsking = false;
    if (!isWanted() && this.words.value.trim() !== '') again = 0;
    if (again === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), again);
  }
}
