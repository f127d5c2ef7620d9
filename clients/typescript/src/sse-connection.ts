// A line without a WebSocket: server-sent events one way, requests the other.
import { parse } from './envelope.js';
import type { Envelope } from './envelope.js';
import { Failure } from './failure.js';
import type { LineEnd } from './ending.js';
import type { Line, LineEars, Parcel } from './line.js';
import { SseReader } from './sse.js';

/** These need no turn: they may take long, or must not wait for what does. */
const BESIDE = new Set(['CANCEL_TASK', 'QUERY', 'REQUEST_STATE', 'EXTENSION']);

/** A stream and requests as a line. */
export class StreamLine implements Line {
  readonly kind = 'stream';
  readonly #base: string;
  readonly #token: string;
  readonly #fetch: typeof fetch;
  readonly #ears: LineEars;
  readonly #stop = new AbortController();
  #connection = '';
  #turn: Promise<void> = Promise.resolve();

  /** `base` is the session's address, `query` says from where to read on. */
  constructor(base: string, query: string, fetching: typeof fetch, token: string, ears: LineEars) {
    this.#base = base;
    this.#token = token;
    this.#fetch = fetching;
    this.#ears = ears;
    this.#read(`${base}/stream?${query}`).catch(() => this.#end({ code: 1006, reason: 'the stream broke' }));
  }

  send(parcel: Parcel): void {
    const post = () => this.#post(parcel).catch(() => this.#end({ code: 1006, reason: 'a request broke' }));
    if (BESIDE.has(parcel.type)) void post();
    else this.#turn = this.#turn.then(post);
  }

  drop(): void {
    this.#stop.abort();
  }

  async #read(url: string): Promise<void> {
    const response = await this.#request(url, { headers: { Accept: 'text/event-stream' } });
    if (!response.ok || !response.body) return this.#end(await refusal(response));
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const events = new SseReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return this.#end({ code: 1006, reason: 'the stream ended' });
      if (this.#stop.signal.aborted) return;
      this.#ears.alive();
      for (const { event, data } of events.push(decoder.decode(value, { stream: true }))) {
        if (this.#stop.signal.aborted) return;
        if (event === 'close') return this.#end(JSON.parse(data) as LineEnd);
        this.#hear(parse(data));
      }
    }
  }

  async #post(parcel: Parcel): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const response = await this.#request(`${this.#base}/commands?connection=${this.#connection}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: parcel.text,
    });
    if (!response.headers.get('Content-Type')?.includes('problem+json')) {
      const text = await response.text();
      const answer = parse(text);
      // A proxy's own page says nothing about the command: it is sent again on the next line.
      return answer ? this.#hear(answer) : this.#end({ code: 1006, reason: `status ${response.status}` });
    }
    const failure = await Failure.of(response);
    const isOfLine = [401, 404].includes(failure.status) || failure.details['field'] === 'connection';
    if (isOfLine) return this.#end(endFor(failure));
    const { code, message, details } = failure;
    this.#hear({
      type: 'ERROR_MESSAGE',
      messageId: parcel.messageId,
      timestamp: new Date().toISOString(),
      payload: { code: code === 'UNREACHABLE' || code === 'OTHER_USER' ? 'STORAGE_UNAVAILABLE' : code, message, details, recoverable: true },
    });
  }

  #request(url: string, init: RequestInit): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Bearer ${this.#token}` };
    return this.#fetch(url, { ...init, headers, cache: 'no-store', signal: this.#stop.signal });
  }

  #hear(envelope: Envelope | undefined): void {
    if (!envelope || this.#stop.signal.aborted) return;
    if (envelope.type === 'CONNECTION_ACK') this.#connection = envelope.payload.connectionId;
    this.#ears.heard(envelope);
  }

  #end(end: LineEnd): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#ears.ended(end);
  }
}

async function refusal(response: Response): Promise<LineEnd> {
  return endFor(await Failure.of(response));
}

/** A refused request in the words of a socket. */
function endFor(failure: Failure): LineEnd {
  const { status, message, retryAfterMs } = failure;
  if (status === 401) return { code: 4401, reason: message };
  if (status === 404) return { code: 4404, reason: message };
  return { code: retryAfterMs === undefined ? 1006 : 1012, reason: message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}
