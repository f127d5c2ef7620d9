// A gateway: where to log in.
import type * as Http from './generated/http.js';
import { Login } from './login.js';
import type { Reach } from './login.js';
import { Session } from './session.js';
import type { JoinOptions } from './session.js';
import type { SocketClass } from './socket-line.js';

/** What a gateway is reached with. */
export interface GatewayOptions {
  /** A WebSocket class; the global one unless given. Node before 22 has none: give it the one of `ws`. */
  WebSocket?: unknown;
  /** Instead of the global one. */
  fetch?: typeof fetch;
}

/** Where to log in, and what can be done then. */
export class Gateway {
  readonly #reach: Reach;
  readonly #Socket: SocketClass | undefined;

  /** `url` is where its pages are: `https://agents.example.org`, with its base path if it has one. */
  constructor(url: string, options: GatewayOptions = {}) {
    const fetching = options.fetch ?? globalThis.fetch;
    this.#reach = { base: url.replace(/\/+$/, ''), fetch: (...given) => fetching(...given) };
    this.#Socket = (options.WebSocket ?? (globalThis as { WebSocket?: unknown }).WebSocket) as SocketClass | undefined;
  }

  /** Logs in. With `sessionId` the login is good for that session only. */
  async login(username: string, password: string, sessionId?: string): Promise<Account> {
    return new Account(await Login.start(this.#reach, username, password, sessionId), this.#Socket);
  }

  /** Makes the first administrator, with what stands behind `#t=` in the setup link. */
  async setUp(token: string, username: string, password: string): Promise<Account> {
    return new Account(await Login.accept(this.#reach, '/api/setup', { token, username, password }), this.#Socket);
  }

  /** Sets the password of somebody who was invited, with what stands behind `#t=` in the link. */
  async accept(token: string, password: string): Promise<Account> {
    return new Account(await Login.accept(this.#reach, '/api/invites/accept', { token, password }), this.#Socket);
  }

  /** Goes on with the login that a browser remembers; fails with `AUTH_FAILED` if there is none. */
  async resume(): Promise<Account> {
    return new Account(await Login.resume(this.#reach), this.#Socket);
  }

  /** With a token from `switchboard token create`. */
  use(token: string): Account {
    return new Account(Login.bearer(this.#reach, token), this.#Socket);
  }
}

/** Somebody who is logged in, and what is theirs. */
export class Account {
  readonly #Socket: SocketClass | undefined;

  constructor(readonly login: Login, Socket: SocketClass | undefined) {
    this.#Socket = Socket;
  }

  /** Makes a session and joins it. */
  async open(session: Http.CreateRequest = {}, options: JoinOptions = {}): Promise<Session> {
    const made = await this.request<Http.SessionBody>('POST', '/api/sessions', session);
    return this.join(made.id, options);
  }

  /** Joins a session. Connects in the background; await its `ready` to have something to show. */
  join(id: string, options: JoinOptions = {}): Session {
    return new Session(this.login, id, this.#Socket, options);
  }

  /** One page of the sessions, the newest change first; `q` searches in what was said. */
  sessions(page: { limit?: number; before?: string; q?: string } = {}): Promise<Http.SessionsBody> {
    const given = Object.entries(page).map(([name, value]): [string, string] => [name, String(value)]);
    return this.request('GET', `/api/sessions?${new URLSearchParams(given)}`);
  }

  /** The agents that a session can have. */
  agents(): Promise<Http.AgentsBody> {
    return this.request('GET', '/api/agents');
  }

  /** Any other request of the HTTP API, with the token and as JSON. */
  request<T>(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<T> {
    return this.login.request<T>(method, path, body, timeoutMs);
  }

  /** Logs out: all sessions of this login end within a second. */
  logout(): Promise<void> {
    return this.login.logout();
  }
}
