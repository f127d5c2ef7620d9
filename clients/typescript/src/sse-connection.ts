// SSE connection: receives server-sent events and sends commands as POST requests, where no WebSocket can be
// opened.
import type { CloseInfo } from './close.js';
import type { EncodedCommand } from './command.js';
import type { Connection, ConnectionListener } from './connection.js';
import { parseEnvelope } from './envelope.js';
import type { Envelope } from './envelope.js';
import { Failure } from './failure.js';
import { SseParser } from './sse-parser.js';

/** Posted without waiting for earlier commands: they may take long, or must overtake those that do. */
const CONCURRENT_COMMANDS = new Set(['CANCEL_TASK', 'QUERY', 'REQUEST_STATE', 'EXTENSION']);

/** A connection over server-sent events. */
export class SseConnection implements Connection {
  readonly kind = 'stream';
  readonly #base: string;
  readonly #token: string;
  readonly #fetch: typeof fetch;
  readonly #listener: ConnectionListener;
  readonly #abort = new AbortController();
  #connection = '';
  #lastPost: Promise<void> = Promise.resolve();

  /** `base` is the session's URL, `query` the resume parameters. */
  constructor(base: string, query: string, fetchFunction: typeof fetch, token: string, listener: ConnectionListener) {
    this.#base = base;
    this.#token = token;
    this.#fetch = fetchFunction;
    this.#listener = listener;
    this.#read(`${base}/stream?${query}`).catch(() => this.#close({ code: 1006, reason: 'the stream broke' }));
  }

  send(command: EncodedCommand): void {
    const post = () => this.#post(command).catch(() => this.#close({ code: 1006, reason: 'a request broke' }));
    if (CONCURRENT_COMMANDS.has(command.type)) void post();
    else this.#lastPost = this.#lastPost.then(post);
  }

  drop(): void {
    this.#abort.abort();
  }

  async #read(url: string): Promise<void> {
    const response = await this.#request(url, { headers: { Accept: 'text/event-stream' } });
    if (!response.ok || !response.body) return this.#close(await closeOfResponse(response));
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const events = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return this.#close({ code: 1006, reason: 'the stream ended' });
      if (this.#abort.signal.aborted) return;
      this.#listener.alive();
      for (const { event, data } of events.push(decoder.decode(value, { stream: true }))) {
        if (this.#abort.signal.aborted) return;
        if (event === 'close') return this.#close(JSON.parse(data) as CloseInfo);
        this.#receive(parseEnvelope(data));
      }
    }
  }

  async #post(command: EncodedCommand): Promise<void> {
    if (this.#abort.signal.aborted) return;
    const response = await this.#request(`${this.#base}/commands?connection=${this.#connection}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: command.text,
    });
    if (!response.headers.get('Content-Type')?.includes('problem+json')) {
      const text = await response.text();
      const answer = parseEnvelope(text);
      // Not an envelope: a proxy's own error page. The command is resent on the next connection.
      return answer ? this.#receive(answer) : this.#close({ code: 1006, reason: `status ${response.status}` });
    }
    const failure = await Failure.fromResponse(response);
    const isFatal = [401, 404].includes(failure.status) || failure.details['field'] === 'connection';
    if (isFatal) return this.#close(closeOfFailure(failure));
    const { code, message, details } = failure;
    this.#receive({
      type: 'ERROR_MESSAGE',
      messageId: command.messageId,
      timestamp: new Date().toISOString(),
      payload: { code: code === 'UNREACHABLE' || code === 'OTHER_USER' ? 'STORAGE_UNAVAILABLE' : code, message, details, recoverable: true },
    });
  }

  #request(url: string, init: RequestInit): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${this.#token}` };
    return this.#fetch(url, { ...init, headers, cache: 'no-store', signal: this.#abort.signal });
  }

  #receive(envelope: Envelope | undefined): void {
    if (!envelope || this.#abort.signal.aborted) return;
    if (envelope.type === 'CONNECTION_ACK') this.#connection = envelope.payload.connectionId;
    this.#listener.received(envelope);
  }

  #close(close: CloseInfo): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#listener.closed(close);
  }
}

async function closeOfResponse(response: Response): Promise<CloseInfo> {
  return closeOfFailure(await Failure.fromResponse(response));
}

/** A refused request as the close that a WebSocket would have reported. */
function closeOfFailure(failure: Failure): CloseInfo {
  const { status, message, retryAfterMs } = failure;
  if (status === 401) return { code: 4401, reason: message };
  if (status === 404) return { code: 4404, reason: message };
  return { code: retryAfterMs === undefined ? 1006 : 1012, reason: message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}
