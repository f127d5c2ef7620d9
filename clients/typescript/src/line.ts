// A line to the gateway: a WebSocket, or a stream with requests beside it.
import type { CommandType, Envelope } from './envelope.js';
import type { LineEnd } from './ending.js';

/** A command as it goes over the line; the same text each time that it is sent. */
export interface Parcel {
  readonly type: CommandType;
  readonly messageId: string;
  readonly text: string;
}

/** What a line tells. After `ended` it tells nothing more. */
export interface LineEars {
  /** Something was said. */
  heard(envelope: Envelope): void;
  /** The other side lives, whether or not it said something. */
  alive(): void;
  /** The line is gone, or could not be opened. */
  ended(end: LineEnd): void;
}

/** One connection. It never comes back; a new one is made in its place. */
export interface Line {
  readonly kind: 'socket' | 'stream';
  /** Sends. What is lost with the line has to be sent again on the next one. */
  send(parcel: Parcel): void;
  /** Lets go of it, at once and without `ended`. */
  drop(): void;
}

/** From where to read on: `place` of `Cursor`, as parameters of the address. */
export type Place = Record<string, string>;
