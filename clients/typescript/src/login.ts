// Login: the access token, its renewal, and requests that carry it.
import { Failure } from './failure.js';
import type { UserBody } from './generated/http.js';
import { withRefreshLock } from './refresh-lock.js';

/** The gateway's answer to a login or a refresh. */
export interface TokenResponse {
  token: string;
  expiresAt: string;
  user: UserBody;
}

/** Where the gateway is, and what to reach it with. */
export interface Endpoint {
  /** The gateway's address without a trailing slash. */
  readonly base: string;
  readonly fetch: typeof fetch;
}

/** Options of a request. */
export interface RequestOptions {
  /** `GET` by default. */
  method?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** How long the answer may take; 20 s by default. */
  timeoutMs?: number;
}

const REFRESH_COOKIE = /(?:^|[,;]\s*)(switchboard_refresh=[^;,\s]+)/;
const REQUEST_TIMEOUT_MS = 20_000;

const authorization = (token: string) => ({ Authorization: `Bearer ${token}` });

/** A login. Create one with `Gateway.login`, `Gateway.resume` or `Gateway.use`. */
export class Login {
  #tokens: TokenResponse | undefined;
  #token: string;
  /** The refresh cookie where no browser keeps it, as in Node. Browsers keep it and hide it from scripts. */
  #cookie: string | undefined;
  #renewing: Promise<string> | undefined;
  #ended: Failure | undefined;

  private constructor(readonly endpoint: Endpoint, token: string, readonly canRenew: boolean) {
    this.#token = token;
  }

  /** Logs in with a name and a password. */
  static async start(endpoint: Endpoint, username: string, password: string, sessionId?: string): Promise<Login> {
    const login = new Login(endpoint, '', true);
    await login.#requestToken('/api/auth/login', { username, password, sessionId });
    return login;
  }

  /** Logs in with the one-time token of a setup or invitation link; `body` is the request of that route. */
  static async accept(endpoint: Endpoint, path: '/api/setup' | '/api/invites/accept', body: unknown): Promise<Login> {
    const login = new Login(endpoint, '', true);
    await login.#requestToken(path, body);
    return login;
  }

  /** Logs in with the refresh cookie of the browser. */
  static async resume(endpoint: Endpoint): Promise<Login> {
    const login = new Login(endpoint, '', true);
    await login.renew('');
    return login;
  }

  /** Wraps a token that is renewed elsewhere or not at all. */
  static bearer(endpoint: Endpoint, token: string): Login {
    return new Login(endpoint, token, false);
  }

  /** The current token; it may have expired. */
  get token(): string {
    return this.#token;
  }

  /** The user, unless only a token was given. */
  get user(): UserBody | undefined {
    return this.#tokens?.user;
  }

  /** Why no further token can be had; undefined while the login lasts. */
  get ended(): Failure | undefined {
    return this.#ended;
  }

  /**
   * A token other than `stale`. Concurrent callers share one request: refreshing twice at once would end the
   * login. Once the login has ended, fails with `AUTH_FAILED` for good.
   */
  async renew(stale: string): Promise<string> {
    if (this.#token !== stale) return this.#token;
    if (this.#ended) throw this.#ended;
    if (!this.canRenew) throw (this.#ended = new Failure('AUTH_FAILED', 'The token is not accepted any more.', 401));
    this.#renewing ??= withRefreshLock(() => this.#requestToken('/api/auth/refresh'), this.#cookie === undefined)
      .catch((error: unknown) => {
        if (error instanceof Failure && (error.status === 401 || error.status === 403)) this.#ended = error;
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
    this.#ended = new Failure('AUTH_FAILED', 'You have logged out.', 401);
    this.#cookie = undefined;
  }

  /**
   * A request with the token, repeated once with a new token after a 401. Resolves with a successful response;
   * anything else is a `Failure`.
   */
  async fetch(path: string, options: RequestOptions = {}): Promise<Response> {
    const token = this.#token;
    try {
      return await this.#send(path, options, authorization(token));
    } catch (error) {
      if (!(error instanceof Failure) || error.status !== 401) throw error;
    }
    return this.#send(path, options, authorization(await this.renew(token)));
  }

  /** `fetch` for JSON answers. */
  async request<T>(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<T> {
    const response = await this.fetch(path, { method, body, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  async #requestToken(path: string, body?: unknown): Promise<string> {
    const response = await this.#send(path, { method: 'POST', body }, this.#cookie ? { Cookie: this.#cookie } : {});
    // The cookie first: the old one has just been used up.
    this.#cookie = REFRESH_COOKIE.exec(response.headers.get('Set-Cookie') ?? '')?.[1] ?? this.#cookie;
    const tokens = (await response.json()) as TokenResponse;
    // All tabs share one cookie, and another user may have logged in in another tab.
    if (this.#tokens && this.#tokens.user.id !== tokens.user.id) {
      throw new Failure('OTHER_USER', `${tokens.user.username} has logged in in this browser meanwhile.`, 401);
    }
    this.#tokens = tokens;
    return (this.#token = tokens.token);
  }

  async #send(path: string, { method = 'GET', body, timeoutMs = REQUEST_TIMEOUT_MS }: RequestOptions, headers: Record<string, string>): Promise<Response> {
    let response: Response;
    try {
      response = await this.endpoint.fetch(this.endpoint.base + path, {
        method,
        headers: { Accept: 'application/json', ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
        cache: 'no-store',
        // Delivers the next cookie even if the page is closed meanwhile.
        keepalive: path === '/api/auth/refresh',
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      throw new Failure('UNREACHABLE', `The gateway at ${this.endpoint.base} cannot be reached: ${String(error)}`);
    }
    if (!response.ok) throw await Failure.fromResponse(response);
    return response;
  }
}
