// Envelope: the JSON wrapper of every message, in both directions.
import type { ClientPayloads, Done, EventType, FullState, GatewayPayloads, QueryResult } from './generated/protocol.js';

/** Message types that a client sends. */
export type CommandType = keyof ClientPayloads;

/** Message types that the gateway sends. */
export type MessageType = keyof GatewayPayloads;

/** One message from the gateway, its payload typed by `type`. */
export type Envelope<T extends MessageType = MessageType> = {
  [K in T]: {
    type: K;
    payload: GatewayPayloads[K];
    timestamp: string;
    sessionId?: string;
    /** The id of the command that this answers. */
    messageId?: string;
    /** The position in the journal, on journaled messages only. */
    offset?: number;
    /** Fields of the agent's own message that have no place in the payload. */
    meta?: Record<string, unknown>;
  };
}[T];

/** A journaled message. */
export type SessionEvent<T extends EventType = EventType> = Envelope<T> & { offset: number };

/** What a command resolves with. */
export type Reply<T extends CommandType> = T extends 'REQUEST_STATE'
  ? FullState
  : T extends 'QUERY'
    ? QueryResult
    : Done;

/** Whether a message is journaled. */
export function isEvent(envelope: Envelope): envelope is SessionEvent {
  return typeof envelope.offset === 'number' && envelope.type !== 'FULL_STATE';
}

/** Parses a message; undefined if the text is not one. */
export function parseEnvelope(text: string): Envelope | undefined {
  try {
    const parsed = JSON.parse(text) as Envelope | null;
    return typeof parsed?.type === 'string' && typeof parsed.payload === 'object' ? parsed : undefined;
  } catch {
    return undefined;
  }
}
