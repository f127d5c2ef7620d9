// Session store: holds the view of a session and notifies subscribers.
import { isEvent } from './envelope.js';
import type { Envelope } from './envelope.js';
import { fold, foldTransient } from './fold.js';
import type * as Protocol from './generated/protocol.js';
import { emptyView, GATEWAY_BOUNDS, stateOf, viewOf } from './view.js';
import type { Bounds, View } from './view.js';

/**
 * The state of a session, folded from states and events.
 *
 * `view` is replaced on each change and otherwise stays the same object, so `subscribe` and `view` satisfy
 * frameworks that take an external store.
 */
export class SessionStore {
  #view: View = emptyView();
  readonly #bounds: Bounds;
  readonly #listeners = new Set<() => void>();

  /** Other bounds than the gateway's keep more or less of the conversation. */
  constructor(bounds: Bounds = GATEWAY_BOUNDS) {
    this.#bounds = bounds;
  }

  /** The current view. */
  get view(): View {
    return this.#view;
  }

  /** The current view as a `FULL_STATE`. */
  get state(): Protocol.FullState {
    return stateOf(this.#view);
  }

  /** Calls back after each change; the returned function unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Applies any message of the gateway: events, states, presence and control. */
  apply(envelope: Envelope): void {
    if (envelope.type === 'FULL_STATE') this.#set(viewOf(envelope.payload, this.#bounds, this.#view));
    else if (isEvent(envelope)) this.#set(fold(this.#view, envelope, this.#bounds));
    else this.#set(foldTransient(this.#view, envelope));
  }

  /** Empties the store for a new epoch. */
  clear(epoch: string): void {
    this.#set(emptyView(epoch));
  }

  #set(view: View): void {
    if (view === this.#view) return;
    this.#view = view;
    for (const listener of [...this.#listeners]) listener();
  }
}
