// SSE parser: splits a response body into server-sent events.

export interface ServerSentEvent {
  /** `message` if the event has no name. */
  event: string;
  data: string;
}

/** Assembles events from chunks that may end anywhere, also within a line. */
export class SseParser {
  #partialLine = '';
  #event = '';
  #data: string[] = [];

  /** The events that this chunk completes. */
  push(chunk: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const lines = (this.#partialLine + chunk).split('\n');
    this.#partialLine = lines.pop() ?? '';
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.#data.length > 0) events.push({ event: this.#event || 'message', data: this.#data.join('\n') });
        this.#event = '';
        this.#data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'event') this.#event = value;
      if (field === 'data') this.#data.push(value);
    }
    return events;
  }
}
