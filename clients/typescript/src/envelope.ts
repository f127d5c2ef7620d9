// What goes over the line in one piece, in both directions.
import type { ClientPayloads, Done, EventType, FullState, GatewayPayloads, QueryResult } from './generated/protocol.js';

/** The types of messages that a client sends. */
export type CommandType = keyof ClientPayloads;

/** The types of messages that the gateway sends. */
export type MessageType = keyof GatewayPayloads;

/** One message of the gateway, its payload typed by its `type`. */
export type Envelope<T extends MessageType = MessageType> = {
  [K in T]: {
    type: K;
    payload: GatewayPayloads[K];
    timestamp: string;
    sessionId?: string;
    /** The client's own id of what is answered. */
    messageId?: string;
    /** The place in the journal, of what stands there. */
    offset?: number;
  };
}[T];

/** A message that stands in the journal. */
export type SessionEvent<T extends EventType = EventType> = Envelope<T> & { offset: number };

/** What a command is answered with. */
export type Reply<T extends CommandType> = T extends 'REQUEST_STATE'
  ? FullState
  : T extends 'QUERY'
    ? QueryResult
    : Done;

/** Does this message stand in the journal? */
export function isEvent(envelope: Envelope): envelope is SessionEvent {
  return typeof envelope.offset === 'number' && envelope.type !== 'FULL_STATE';
}

/** A message as it was read, if it is one at all. */
export function parse(text: string): Envelope | undefined {
  try {
    const read = JSON.parse(text) as Envelope | null;
    return typeof read?.type === 'string' && typeof read.payload === 'object' ? read : undefined;
  } catch {
    return undefined;
  }
}
