// Server-sent events, read from a body that comes in pieces.

/** One event. */
export interface ServerSent {
  /** `message` unless it has another name. */
  event: string;
  data: string;
}

/** Puts pieces together; knows lines that end in the middle of a piece. */
export class SseReader {
  #rest = '';
  #event = '';
  #data: string[] = [];

  /** The events that are complete with this piece. */
  push(piece: string): ServerSent[] {
    const events: ServerSent[] = [];
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
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
