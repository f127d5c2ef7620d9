// Keeps the view of a session and tells when it changes.
import { isEvent } from './envelope.js';
import type { Envelope } from './envelope.js';
import { fold, foldAround } from './fold.js';
import type * as Protocol from './generated/protocol.js';
import { emptyView, GATEWAY_BOUNDS, stateOf, viewOf } from './view.js';
import type { Bounds, View } from './view.js';

/**
 * What a screen shows of a session, put together from states and events.
 *
 * `view` is another object after each change and the same as long as nothing changed, so
 * `subscribe` and `view` fit what frameworks want of a store.
 */
export class SessionStore {
  #view: View = emptyView();
  readonly #bounds: Bounds;
  readonly #listeners = new Set<() => void>();

  /** Other bounds than the gateway's keep more or less of the conversation. */
  constructor(bounds: Bounds = GATEWAY_BOUNDS) {
    this.#bounds = bounds;
  }

  /** The session as it is now. */
  get view(): View {
    return this.#view;
  }

  /** The same in the words of `FULL_STATE`. */
  get state(): Protocol.FullState {
    return stateOf(this.#view);
  }

  /** Calls back after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes in whatever the gateway sent: events, states, and how things are around the session. */
  apply(envelope: Envelope): void {
    if (envelope.type === 'FULL_STATE') this.#set(viewOf(envelope.payload, this.#bounds, this.#view));
    else if (isEvent(envelope)) this.#set(fold(this.#view, envelope, this.#bounds));
    else this.#set(foldAround(this.#view, envelope));
  }

  /** Begins anew, in another counting of offsets. */
  clear(epoch: string): void {
    this.#set(emptyView(epoch));
  }

  #set(view: View): void {
    if (view === this.#view) return;
    this.#view = view;
    for (const listener of [...this.#listeners]) listener();
  }
}
