// Connection: one WebSocket, or one event stream with POST requests beside it.
import type { CloseInfo } from './close.js';
import type { EncodedCommand } from './command.js';
import type { Envelope } from './envelope.js';

/** Callbacks of a connection. None is called after `closed`. */
export interface ConnectionListener {
  /** A message arrived. */
  received(envelope: Envelope): void;
  /** Bytes arrived: the peer is there, whether or not they were a whole message. */
  alive(): void;
  /** The connection ended, or could not be opened. */
  closed(close: CloseInfo): void;
}

/** One connection. It is never reopened; a new one replaces it. */
export interface Connection {
  readonly kind: 'socket' | 'stream';
  /** Sends a command. What is lost with the connection is resent on the next one. */
  send(command: EncodedCommand): void;
  /** Closes at once, without calling `closed`. */
  drop(): void;
}

/** Where to resume reading: `after` and `epoch` as query parameters. */
export type ResumeQuery = Record<string, string>;
