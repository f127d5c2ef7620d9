// Listens for what concerns everybody while no session is open: notices, and the end of the login.
//
// It is one plain socket. The gateway gives it a session of its own, which is kept nowhere as long as
// nothing is said in it.
import { Backoff, verdict } from '@switchboard/client';
import type { Account, Envelope } from '@switchboard/client';
import { noticeEnd } from './account';
import { notice } from './notices';

const RENEW_BEFORE_MS = 30_000;
/** After having been too fast. */
const LATER_MS = 30_000;
const STABLE_MS = 10_000;
/** Fresh tokens that may be refused in a row: then it is not the token. */
const TOKEN_TRIES = 3;

export class Lookout {
  readonly #mine: Account;
  readonly #backoff = new Backoff({ baseMs: 500 });
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #socket: WebSocket | undefined;
  #token = '';
  #refused = 0;
  #isClosed = false;
  readonly #hurry = () => {
    if (!this.#socket) this.#dial();
  };

  constructor(mine: Account) {
    this.#mine = mine;
    addEventListener('online', this.#hurry);
    this.#dial();
  }

  close(): void {
    this.#isClosed = true;
    removeEventListener('online', this.#hurry);
    this.#clear();
  }

  #dial(): void {
    if (this.#isClosed) return;
    this.#clear();
    this.#token = this.#mine.login.token;
    const socket = new WebSocket(`${this.#mine.login.reach.base.replace(/^http/, 'ws')}/ws`, ['switchboard.v1', `bearer.${this.#token}`]);
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#hear(String(data));
    socket.onclose = ({ code, reason }) => this.#lost(code, reason);
  }

  #hear(words: string): void {
    const { type, payload, timestamp } = JSON.parse(words) as Envelope;
    switch (type) {
      case 'CONNECTION_ACK':
        return this.#after(STABLE_MS, () => {
          this.#refused = 0;
          this.#backoff.reset();
        });
      case 'NOTICE':
        return notice(payload);
      case 'TOKEN_EXPIRING':
        return this.#after(Date.parse(payload.expiresAt) - Date.parse(timestamp) - RENEW_BEFORE_MS, () => void this.#renew());
      default:
    }
  }

  #lost(code: number, reason: string): void {
    this.#clear();
    const told = Number(/retryAfterMs=(\d+)/.exec(reason)?.[1]);
    switch (verdict({ code, reason })) {
      case 'new-token':
        return void this.#renewAfterRefusal();
      case 'as-told':
        return this.#after(told || this.#backoff.next(), () => this.#dial());
      case 'end':
      case 'later':
        return this.#after(LATER_MS, () => this.#dial());
      default:
        return this.#after(this.#backoff.next(), () => this.#dial());
    }
  }

  /** In time, so that the socket lives on. */
  async #renew(): Promise<void> {
    const socket = this.#socket;
    try {
      this.#token = await this.#mine.login.renew(this.#token);
      if (this.#socket === socket) socket?.send(JSON.stringify({ type: 'AUTH_REFRESH', payload: { token: this.#token } }));
    } catch (error) {
      if (this.#isClosed) return;
      noticeEnd(this.#mine, error);
      // Not reachable: the gateway closes the socket, and then it is tried again.
    }
  }

  /** A refused token is not tried again: there is a new one, or the login is over. */
  async #renewAfterRefusal(): Promise<void> {
    this.#refused += 1;
    try {
      await this.#mine.login.renew(this.#token);
    } catch (error) {
      if (this.#isClosed) return;
      noticeEnd(this.#mine, error);
      this.#after(this.#backoff.next(), () => void this.#renewAfterRefusal());
      return;
    }
    if (this.#refused > TOKEN_TRIES) this.#after(LATER_MS, () => this.#dial());
    else if (this.#refused > 1) this.#after(this.#backoff.next(), () => this.#dial());
    else this.#dial();
  }

  #after(waitMs: number, task: () => void): void {
    if (this.#isClosed) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, Math.max(0, waitMs));
    this.#timers.add(timer);
  }

  #clear(): void {
    this.#timers.forEach(clearTimeout);
    this.#timers.clear();
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.onmessage = socket.onclose = null;
    socket.close(1000);
  }
}
