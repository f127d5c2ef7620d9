// Commands: what a client sends, encoded once so that each resend is byte for byte the same.
import type { CommandType } from './envelope.js';

/** Sent without an idempotency key: they change nothing, are harmless to repeat, or belong to one connection. */
const KEYLESS_COMMANDS: ReadonlySet<CommandType> = new Set<CommandType>([
  'AUTH_REFRESH', 'CANCEL_TASK', 'HEARTBEAT', 'QUERY', 'RELEASE_CONTROL', 'REQUEST_STATE', 'TAKE_CONTROL',
]);

/** A command as JSON, ready to be sent and resent. */
export interface EncodedCommand {
  readonly type: CommandType;
  readonly messageId: string;
  readonly text: string;
}

/** How a command is sent. */
export interface SendOptions {
  /** Stop waiting for the answer after this long. The command may still take effect. */
  timeoutMs?: number;
  /** Refuse the command unless this fencing number of `TAKE_CONTROL` is still the current one. */
  fence?: number;
  /** The caller's own key; another program may resend under it without a second effect. */
  idempotencyKey?: string;
}

export function isKeyless(type: CommandType): boolean {
  return KEYLESS_COMMANDS.has(type);
}

/** A random id of 32 hex digits. */
export function newId(): string {
  const bytes = new Uint8Array(16);
  // `randomUUID` is missing on pages without https, and Node 18 has no global `crypto`.
  if (globalThis.crypto?.getRandomValues) globalThis.crypto.getRandomValues(bytes);
  else bytes.forEach((_, index) => (bytes[index] = Math.random() * 256));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Encodes a command under a fresh message id. */
export function encodeCommand(sessionId: string, type: CommandType, payload: unknown, { fence, idempotencyKey }: SendOptions = {}): EncodedCommand {
  const messageId = newId();
  const key = isKeyless(type) ? {} : { idempotencyKey: idempotencyKey ?? messageId };
  const text = JSON.stringify({ type, payload, sessionId, messageId, ...key, ...(fence === undefined ? {} : { fence }) });
  return { type, messageId, text };
}
