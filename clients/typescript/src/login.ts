// Somebody who is logged in: the token, and how to get the next one.
import { Failure } from './failure.js';
import { alone } from './turns.js';
import type { UserBody } from './generated/http.js';

/** What logging in and refreshing answer. */
export interface Grant {
  token: string;
  expiresAt: string;
  user: UserBody;
}

/** How to reach the gateway. */
export interface Reach {
  /** The gateway's address without a slash at the end. */
  readonly base: string;
  readonly fetch: typeof fetch;
}

/** What to ask for. */
export interface Asking {
  /** `GET` unless given. */
  method?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** How long the answer may take; 20 s unless given. */
  timeoutMs?: number;
}

const COOKIE = /(?:^|[,;]\s*)(switchboard_refresh=[^;,\s]+)/;
const REQUEST_MS = 20_000;

const bearing = (token: string) => ({ Authorization: `Bearer ${token}` });

/** A login. Make one with `Gateway.login`, `Gateway.resume` or `Gateway.use`. */
export class Login {
  #grant: Grant | undefined;
  #token: string;
  /** Where nobody keeps cookies for us, as in Node. A browser does, and does not show it. */
  #cookie: string | undefined;
  #renewing: Promise<string> | undefined;
  #over: Failure | undefined;

  private constructor(readonly reach: Reach, token: string, readonly canRenew: boolean) {
    this.#token = token;
  }

  /** With a name and a password. */
  static async start(reach: Reach, username: string, password: string, sessionId?: string): Promise<Login> {
    const login = new Login(reach, '', true);
    await login.#take('/api/auth/login', { username, password, sessionId });
    return login;
  }

  /** With the one-time token of a setup or invitation link; `body` is what that route wants. */
  static async accept(reach: Reach, path: '/api/setup' | '/api/invites/accept', body: unknown): Promise<Login> {
    const login = new Login(reach, '', true);
    await login.#take(path, body);
    return login;
  }

  /** With the refresh cookie that a browser has kept. */
  static async resume(reach: Reach): Promise<Login> {
    const login = new Login(reach, '', true);
    await login.renew('');
    return login;
  }

  /** With a token that somebody else looks after. */
  static bearer(reach: Reach, token: string): Login {
    return new Login(reach, token, false);
  }

  /** The token as it is now; it may have expired. */
  get token(): string {
    return this.#token;
  }

  /** Who it is, unless only a token was given. */
  get user(): UserBody | undefined {
    return this.#grant?.user;
  }

  /** Why there will be no further token; nothing as long as there may be one. */
  get over(): Failure | undefined {
    return this.#over;
  }

  /**
   * A token other than `stale`. However many ask, one request is made: to refresh twice at once would
   * end the login. Fails with `AUTH_FAILED` for good once the login has ended.
   */
  async renew(stale: string): Promise<string> {
    if (this.#token !== stale) return this.#token;
    if (this.#over) throw this.#over;
    if (!this.canRenew) throw (this.#over = new Failure('AUTH_FAILED', 'The token is not accepted any more.', 401));
    this.#renewing ??= alone(() => this.#take('/api/auth/refresh'), this.#cookie === undefined)
      .catch((error: unknown) => {
        if (error instanceof Failure && (error.status === 401 || error.status === 403)) this.#over = error;
        throw error;
      })
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  /** Ends this login, here and at the gateway. */
  async logout(): Promise<void> {
    await this.request('POST', '/api/auth/logout');
    this.#over = new Failure('AUTH_FAILED', 'You have logged out.', 401);
    this.#cookie = undefined;
  }

  /**
   * A request with the token, and once more with a new one if that has expired. Resolves with an answer
   * that is good; anything else is a `Failure`.
   */
  async fetch(path: string, asking: Asking = {}): Promise<Response> {
    const token = this.#token;
    try {
      return await this.#send(path, asking, bearing(token));
    } catch (error) {
      if (!(error instanceof Failure) || error.status !== 401) throw error;
    }
    return this.#send(path, asking, bearing(await this.renew(token)));
  }

  /** The same for answers in JSON. */
  async request<T>(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<T> {
    const response = await this.fetch(path, { method, body, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  async #take(path: string, body?: unknown): Promise<string> {
    const response = await this.#send(path, { method: 'POST', body }, this.#cookie ? { Cookie: this.#cookie } : {});
    // The cookie first: it is good for one use, and the old one is worth nothing any more.
    this.#cookie = COOKIE.exec(response.headers.get('Set-Cookie') ?? '')?.[1] ?? this.#cookie;
    const grant = (await response.json()) as Grant;
    // A browser has one cookie for all its tabs, and somebody else may have logged in in another one.
    if (this.#grant && this.#grant.user.id !== grant.user.id) {
      throw new Failure('OTHER_USER', `${grant.user.username} has logged in in this browser meanwhile.`, 401);
    }
    this.#grant = grant;
    return (this.#token = grant.token);
  }

  async #send(path: string, { method = 'GET', body, timeoutMs = REQUEST_MS }: Asking, headers: Record<string, string>): Promise<Response> {
    let response: Response;
    try {
      response = await this.reach.fetch(this.reach.base + path, {
        method,
        headers: { Accept: 'application/json', ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
        cache: 'no-store',
        // The next cookie arrives even if the page is left meanwhile.
        keepalive: path === '/api/auth/refresh',
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      throw new Failure('UNREACHABLE', `The gateway at ${this.reach.base} cannot be reached: ${String(error)}`);
    }
    if (!response.ok) throw await Failure.of(response);
    return response;
  }
}
