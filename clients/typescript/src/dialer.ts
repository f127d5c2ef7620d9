// Makes lines to one session, and chooses of which kind.
import type { Line, LineEars, Place } from './line.js';
import type { Login } from './login.js';
import { SocketLine } from './socket-line.js';
import type { SocketClass } from './socket-line.js';
import { StreamLine } from './stream-line.js';

/** `auto`: a WebSocket, and a stream where none can be opened. */
export type Transport = 'auto' | 'socket' | 'stream';

/** So many sockets in a row must fail before a network counts as one that lets none pass. */
const REFUSALS = { untried: 1, proven: 3 };
/** After this long a socket is tried again. */
const RETRY_SOCKET_MS = 5 * 60_000;

/** Chooses and makes lines. */
export class Dialer {
  #refusals = 0;
  #proven = false;
  #streamSince = 0;

  constructor(
    readonly login: Login,
    readonly sessionId: string,
    readonly transport: Transport,
    readonly Socket: SocketClass | undefined,
  ) {
    if (transport === 'socket' && !Socket) throw new TypeError('There is no WebSocket here; give one to the Gateway.');
  }

  /** A new line. */
  dial(place: Place, ears: LineEars): Line {
    const { login, sessionId } = this;
    const { base, fetch } = login.reach;
    if (this.Socket && !this.#prefersStream()) {
      const query = new URLSearchParams({ session: sessionId, ...place });
      const url = `${base.replace(/^http/, 'ws')}/ws?${query}`;
      try {
        return new SocketLine(url, this.Socket, login.token, ears);
      } catch {
        // A page may be forbidden to open one.
        queueMicrotask(() => ears.ended({ code: 1006, reason: 'a WebSocket cannot be made here' }));
        return { kind: 'socket', send: () => {}, drop: () => {} };
      }
    }
    const query = new URLSearchParams(place);
    return new StreamLine(`${base}/api/sessions/${sessionId}`, query.toString(), fetch, login.token, ears);
  }

  /** A line was acknowledged. */
  worked(kind: Line['kind']): void {
    if (kind === 'stream') return;
    this.#proven = true;
    this.#refusals = 0;
  }

  /** A line could not be opened. Says whether another kind is to be tried at once. */
  failed(kind: Line['kind']): boolean {
    if (this.transport !== 'auto') return false;
    if (kind === 'stream') {
      // The gateway itself is away: begin with the better kind again.
      this.#streamSince = 0;
      return false;
    }
    this.#refusals += 1;
    if (this.#refusals < (this.#proven ? REFUSALS.proven : REFUSALS.untried)) return false;
    this.#streamSince = Date.now();
    return true;
  }

  #prefersStream(): boolean {
    if (this.transport !== 'auto') return this.transport === 'stream';
    return this.#streamSince > 0 && Date.now() - this.#streamSince < RETRY_SOCKET_MS;
  }
}
