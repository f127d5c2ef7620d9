// WebSocket connection: sends and receives envelopes over one WebSocket.
import { retryAfterIn } from './close.js';
import type { EncodedCommand } from './command.js';
import type { Connection, ConnectionListener } from './connection.js';
import { parseEnvelope } from './envelope.js';

/** The part of a WebSocket that is used. The browser's, Node's and the class of `ws` all match. */
export interface SocketLike {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  /** Destroys the socket without a close handshake; only `ws` has it. */
  terminate?(): void;
}

/** A WebSocket constructor. */
export type SocketClass = new (url: string, protocols: string[]) => SocketLike;

/** A connection over a WebSocket. */
export class WebSocketConnection implements Connection {
  readonly kind = 'socket';
  readonly #socket: SocketLike;

  constructor(url: string, Socket: SocketClass, token: string, listener: ConnectionListener) {
    const socket = new Socket(url, ['switchboard.v1', `bearer.${token}`]);
    this.#socket = socket;
    socket.onopen = () => listener.alive();
    socket.onmessage = ({ data }: { data: unknown }) => {
      const envelope = parseEnvelope(String(data));
      listener.alive();
      if (envelope) listener.received(envelope);
    };
    socket.onerror = () => {};
    socket.onclose = ({ code, reason }: { code: number; reason: unknown }) => {
      this.#removeHandlers();
      const text = String(reason ?? '');
      const retryAfterMs = retryAfterIn(text);
      listener.closed({ code: code || 1006, reason: text, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
    };
  }

  send(command: EncodedCommand): void {
    if (this.#socket.readyState === 1) this.#socket.send(command.text);
  }

  drop(): void {
    this.#removeHandlers();
    try {
      this.#socket.close(1000);
    } catch {
      // It was never open.
    }
    // In Node a dead peer would keep the process alive until its close frame arrives.
    if (this.#socket.terminate) {
      const timer = setTimeout(() => this.#socket.terminate?.(), 500) as unknown as { unref?(): void };
      timer.unref?.();
    }
  }

  #removeHandlers(): void {
    const ignore = () => {};
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = ignore;
    this.#socket.onerror = ignore;
  }
}
