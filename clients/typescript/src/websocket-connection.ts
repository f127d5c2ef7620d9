// A line over a WebSocket.
import { parse } from './envelope.js';
import { waitIn } from './ending.js';
import type { Line, LineEars, Parcel } from './line.js';

/** As much of a WebSocket as is used; the browser's own, Node's, and the class of `ws` fit. */
export interface SocketLike {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  /** `ws` has it: gone at once. */
  terminate?(): void;
}

/** How a WebSocket is made. */
export type SocketClass = new (url: string, protocols: string[]) => SocketLike;

/** A WebSocket as a line. */
export class SocketLine implements Line {
  readonly kind = 'socket';
  readonly #socket: SocketLike;

  constructor(url: string, Socket: SocketClass, token: string, ears: LineEars) {
    const socket = new Socket(url, ['switchboard.v1', `bearer.${token}`]);
    this.#socket = socket;
    socket.onopen = () => ears.alive();
    socket.onmessage = ({ data }: { data: unknown }) => {
      const envelope = parse(String(data));
      ears.alive();
      if (envelope) ears.heard(envelope);
    };
    socket.onerror = () => {};
    socket.onclose = ({ code, reason }: { code: number; reason: unknown }) => {
      this.#silence();
      const text = String(reason ?? '');
      const retryAfterMs = waitIn(text);
      ears.ended({ code: code || 1006, reason: text, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
    };
  }

  send(parcel: Parcel): void {
    if (this.#socket.readyState === 1) this.#socket.send(parcel.text);
  }

  drop(): void {
    this.#silence();
    try {
      this.#socket.close(1000);
    } catch {
      // It was not even open.
    }
    // A peer that is gone would keep a Node process waiting for its farewell.
    if (this.#socket.terminate) {
      const timer = setTimeout(() => this.#socket.terminate?.(), 500) as unknown as { unref?(): void };
      timer.unref?.();
    }
  }

  #silence(): void {
    const nothing = () => {};
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = nothing;
    this.#socket.onerror = nothing;
  }
}
