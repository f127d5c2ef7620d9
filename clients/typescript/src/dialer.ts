// Dialer: opens connections to one session and chooses their transport.
import type { Connection, ConnectionListener, ResumeQuery } from './connection.js';
import type { Login } from './login.js';
import { SseConnection } from './sse-connection.js';
import { WebSocketConnection } from './websocket-connection.js';
import type { SocketClass } from './websocket-connection.js';

/** `auto`: a WebSocket, or an event stream where no WebSocket can be opened. */
export type Transport = 'auto' | 'socket' | 'stream';

/** Failures in a row after which `auto` switches to a stream: at first, and once a socket has worked. */
const MAX_SOCKET_FAILURES = { untried: 1, proven: 3 };
/** How long `auto` stays with a stream before it tries a socket again. */
const SOCKET_RETRY_MS = 5 * 60_000;

/** Opens connections and remembers which transport works. */
export class Dialer {
  #socketFailures = 0;
  #hasSocketWorked = false;
  #streamSince = 0;

  constructor(
    readonly login: Login,
    readonly sessionId: string,
    readonly transport: Transport,
    readonly Socket: SocketClass | undefined,
  ) {
    if (transport === 'socket' && !Socket) throw new TypeError('There is no WebSocket here; give one to the Gateway.');
  }

  /** Opens a connection. */
  dial(resume: ResumeQuery, listener: ConnectionListener): Connection {
    const { login, sessionId } = this;
    const { base, fetch } = login.endpoint;
    if (this.Socket && !this.#prefersStream()) {
      const query = new URLSearchParams({ session: sessionId, ...resume });
      const url = `${base.replace(/^http/, 'ws')}/ws?${query}`;
      try {
        return new WebSocketConnection(url, this.Socket, login.token, listener);
      } catch {
        // A page may be forbidden to open sockets, for example by its content security policy.
        queueMicrotask(() => listener.closed({ code: 1006, reason: 'a WebSocket cannot be made here' }));
        return { kind: 'socket', send: () => {}, drop: () => {} };
      }
    }
    const query = new URLSearchParams(resume);
    return new SseConnection(`${base}/api/sessions/${sessionId}`, query.toString(), fetch, login.token, listener);
  }

  /** Call when a connection was acknowledged. */
  recordOpened(kind: Connection['kind']): void {
    if (kind === 'stream') return;
    this.#hasSocketWorked = true;
    this.#socketFailures = 0;
  }

  /** Call when a connection could not be opened. True: another transport should be tried at once. */
  recordFailed(kind: Connection['kind']): boolean {
    if (this.transport !== 'auto') return false;
    if (kind === 'stream') {
      // The gateway itself is unreachable: start with a socket again next time.
      this.#streamSince = 0;
      return false;
    }
    this.#socketFailures += 1;
    if (this.#socketFailures < (this.#hasSocketWorked ? MAX_SOCKET_FAILURES.proven : MAX_SOCKET_FAILURES.untried)) return false;
    this.#streamSince = Date.now();
    return true;
  }

  #prefersStream(): boolean {
    if (this.transport !== 'auto') return this.transport === 'stream';
    return this.#streamSince > 0 && Date.now() - this.#streamSince < SOCKET_RETRY_MS;
  }
}
