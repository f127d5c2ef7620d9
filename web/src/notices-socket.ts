// Notices socket: receives notices and the end of the login while no session is open.
//
// One plain WebSocket. The gateway gives it a session of its own, which is not stored as long as nothing is
// sent in it.
import { Backoff, closeAction, retryAfterIn } from '@switchboard/client';
import type { Account, Envelope } from '@switchboard/client';
import { signOutIfEnded } from './auth';
import { showNotice } from './notices';

const RENEW_BEFORE_MS = 30_000;
/** The pause after a close for flooding. */
const THROTTLE_WAIT_MS = 30_000;
const STABLE_AFTER_MS = 10_000;
/** New tokens that may be refused in a row before pausing: by then the token is not the cause. */
const MAX_REFUSED_TOKENS = 3;

export class NoticesSocket {
  readonly #account: Account;
  readonly #backoff = new Backoff({ baseMs: 500 });
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #socket: WebSocket | undefined;
  #token = '';
  #tokensRefused = 0;
  #isClosed = false;
  readonly #onOnline = () => {
    if (!this.#socket) this.#connect();
  };

  constructor(account: Account) {
    this.#account = account;
    addEventListener('online', this.#onOnline);
    this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    removeEventListener('online', this.#onOnline);
    this.#reset();
  }

  #connect(): void {
    if (this.#isClosed) return;
    this.#reset();
    this.#token = this.#account.login.token;
    const socket = new WebSocket(`${this.#account.login.endpoint.base.replace(/^http/, 'ws')}/ws`, ['switchboard.v1', `bearer.${this.#token}`]);
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#receive(String(data));
    socket.onclose = ({ code, reason }) => this.#closed(code, reason);
  }

  #receive(text: string): void {
    const { type, payload, timestamp } = JSON.parse(text) as Envelope;
    switch (type) {
      case 'CONNECTION_ACK':
        return this.#schedule(STABLE_AFTER_MS, () => {
          this.#tokensRefused = 0;
          this.#backoff.reset();
        });
      case 'NOTICE':
        return showNotice(payload);
      case 'TOKEN_EXPIRING':
        return this.#schedule(Date.parse(payload.expiresAt) - Date.parse(timestamp) - RENEW_BEFORE_MS, () => void this.#renew());
      default:
    }
  }

  #closed(code: number, reason: string): void {
    this.#reset();
    const retryAfterMs = retryAfterIn(reason);
    switch (closeAction({ code, reason })) {
      case 'renew-token':
        return void this.#renewAfterRefusal();
      case 'retry-after':
        return this.#schedule(retryAfterMs || this.#backoff.next(), () => this.#connect());
      case 'end':
      case 'slow-down':
        return this.#schedule(THROTTLE_WAIT_MS, () => this.#connect());
      default:
        return this.#schedule(this.#backoff.next(), () => this.#connect());
    }
  }

  /** Renews the token before it expires, so that the socket stays open. */
  async #renew(): Promise<void> {
    const socket = this.#socket;
    try {
      this.#token = await this.#account.login.renew(this.#token);
      if (this.#socket === socket) socket?.send(JSON.stringify({ type: 'AUTH_REFRESH', payload: { token: this.#token } }));
    } catch (error) {
      if (this.#isClosed) return;
      signOutIfEnded(this.#account, error);
      // Unreachable: the gateway will close the socket, and the reconnect renews the token.
    }
  }

  /** Never reuses a refused token: gets a new one, or the login has ended. */
  async #renewAfterRefusal(): Promise<void> {
    this.#tokensRefused += 1;
    try {
      await this.#account.login.renew(this.#token);
    } catch (error) {
      if (this.#isClosed) return;
      signOutIfEnded(this.#account, error);
      this.#schedule(this.#backoff.next(), () => void this.#renewAfterRefusal());
      return;
    }
    if (this.#tokensRefused > MAX_REFUSED_TOKENS) this.#schedule(THROTTLE_WAIT_MS, () => this.#connect());
    else if (this.#tokensRefused > 1) this.#schedule(this.#backoff.next(), () => this.#connect());
    else this.#connect();
  }

  #schedule(waitMs: number, task: () => void): void {
    if (this.#isClosed) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, Math.max(0, waitMs));
    this.#timers.add(timer);
  }

  #reset(): void {
    this.#timers.forEach(clearTimeout);
    this.#timers.clear();
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.onmessage = socket.onclose = null;
    socket.close(1000);
  }
}
