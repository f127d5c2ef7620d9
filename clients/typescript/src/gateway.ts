// Gateway: logging in, and the account that results.
import type * as Http from './generated/http.js';
import { Login } from './login.js';
import type { Endpoint } from './login.js';
import { Session } from './session.js';
import type { JoinOptions } from './session.js';
import type { SocketClass } from './websocket-connection.js';

/** What to reach a gateway with. */
export interface GatewayOptions {
  /** A WebSocket class, by default the global one. Node before 22 has none: pass the one from `ws`. */
  WebSocket?: unknown;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
}

/** A gateway to log in to. */
export class Gateway {
  readonly #endpoint: Endpoint;
  readonly #Socket: SocketClass | undefined;

  /** `url` is the address of its pages, such as `https://agents.example.org`, including a base path. */
  constructor(url: string, options: GatewayOptions = {}) {
    const fetchFunction = options.fetch ?? globalThis.fetch;
    this.#endpoint = { base: url.replace(/\/+$/, ''), fetch: (...parameters) => fetchFunction(...parameters) };
    this.#Socket = (options.WebSocket ?? (globalThis as { WebSocket?: unknown }).WebSocket) as SocketClass | undefined;
  }

  /** Logs in. With `sessionId` the login is valid for that session only. */
  async login(username: string, password: string, sessionId?: string): Promise<Account> {
    return new Account(await Login.start(this.#endpoint, username, password, sessionId), this.#Socket);
  }

  /** Creates the first administrator. `token` is what follows `#t=` in the setup link. */
  async setUp(token: string, username: string, password: string): Promise<Account> {
    return new Account(await Login.accept(this.#endpoint, '/api/setup', { token, username, password }), this.#Socket);
  }

  /** Sets the password of an invited user. `token` is what follows `#t=` in the invitation link. */
  async accept(token: string, password: string): Promise<Account> {
    return new Account(await Login.accept(this.#endpoint, '/api/invites/accept', { token, password }), this.#Socket);
  }

  /** Resumes the login that the browser remembers; fails with `AUTH_FAILED` if there is none. */
  async resume(): Promise<Account> {
    return new Account(await Login.resume(this.#endpoint), this.#Socket);
  }

  /** Uses a token from `switchboard token create`. */
  use(token: string): Account {
    return new Account(Login.bearer(this.#endpoint, token), this.#Socket);
  }
}

/** A logged-in account. */
export class Account {
  readonly #Socket: SocketClass | undefined;

  constructor(readonly login: Login, Socket: SocketClass | undefined) {
    this.#Socket = Socket;
  }

  /** Creates a session and joins it. */
  async open(session: Http.CreateRequest = {}, options: JoinOptions = {}): Promise<Session> {
    const created = await this.request<Http.SessionBody>('POST', '/api/sessions', session);
    return this.join(created.id, options);
  }

  /** Joins a session. Connects in the background; await `ready` before showing it. */
  join(id: string, options: JoinOptions = {}): Session {
    return new Session(this.login, id, this.#Socket, options);
  }

  /** One page of the account's sessions, last changed first; `q` searches their messages. */
  sessions(page: { limit?: number; before?: string; q?: string } = {}): Promise<Http.SessionsBody> {
    const parameters = Object.entries(page).map(([name, value]): [string, string] => [name, String(value)]);
    return this.request('GET', `/api/sessions?${new URLSearchParams(parameters)}`);
  }

  /** The agents that a session can run. */
  agents(): Promise<Http.AgentsBody> {
    return this.request('GET', '/api/agents');
  }

  /** Any other request of the HTTP API, with the token, JSON in and out. */
  request<T>(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<T> {
    return this.login.request<T>(method, path, body, timeoutMs);
  }

  /** Logs out. All sessions of this login end within a second. */
  logout(): Promise<void> {
    return this.login.logout();
  }
}
