// Where the reader is in a conversation that grows at both ends: at its end and to be kept there, or somewhere
// in it and not to be moved.
import type { Signal } from '@preact/signals';
import { signal } from '@preact/signals';

/** Whoever is that near to the end wants to be there. */
const NEAR_PX = 24;
/** Older entries are loaded before the reader comes to the first one. */
const AHEAD = 2;

/** An entry in sight, and where. */
interface Anchor {
  key: string;
  top: number;
  bottom: number;
}

export class Scroll {
  /** Is the reader at the end? */
  readonly isAtEnd: Signal<boolean> = signal(true);
  #box: HTMLElement | undefined;
  #anchor: Anchor | undefined;
  #lastTop = 0;
  #resized: ResizeObserver | undefined;

  /** `onNearTop`: older entries are wanted. */
  constructor(readonly onNearTop: () => void) {}

  /** Looks after an element that scrolls, and what is in it. */
  attach(box: HTMLElement, content: HTMLElement): () => void {
    this.#box = box;
    this.#resized = new ResizeObserver(() => this.hold());
    this.#resized.observe(box);
    this.#resized.observe(content);
    box.addEventListener('scroll', this.#scrolled, { passive: true });
    this.hold();
    return () => {
      this.#resized?.disconnect();
      box.removeEventListener('scroll', this.#scrolled);
      this.#box = undefined;
    };
  }

  /** Goes to the end and stays there. */
  toEnd(): void {
    this.isAtEnd.value = true;
    this.hold();
  }

  /**
   * After anything has changed: the reader sees what they saw before. `isFromTop`: it may be that the entry in
   * sight has grown at its beginning.
   */
  hold(isFromTop = false): void {
    const box = this.#box;
    if (!box) return;
    if (this.isAtEnd.value) box.scrollTop = box.scrollHeight;
    else this.#return(box, isFromTop);
    this.#lastTop = box.scrollTop;
    this.#note(box);
    this.#wantOlder(box);
  }

  readonly #scrolled = () => {
    const box = this.#box;
    if (!box) return;
    const { scrollTop } = box;
    const left = box.scrollHeight - scrollTop - box.clientHeight;
    if (left <= 2) this.isAtEnd.value = true;
    // Up is away from the end, however little: it would be like tearing at a rubber band otherwise.
    else if (scrollTop < this.#lastTop) this.isAtEnd.value = false;
    else if (scrollTop > this.#lastTop) this.isAtEnd.value = left < NEAR_PX;
    this.#lastTop = scrollTop;
    this.#note(box);
    this.#wantOlder(box);
  };

  #wantOlder(box: HTMLElement): void {
    if (box.clientHeight > 0 && box.scrollTop < AHEAD * box.clientHeight) this.onNearTop();
  }

  /** Where the entry was. */
  #return(box: HTMLElement, isFromTop: boolean): void {
    const anchor = this.#anchor;
    const entry = anchor && entries(box).find((one) => one.dataset['key'] === anchor.key);
    if (!anchor || !entry) return;
    const { top, bottom } = entry.getBoundingClientRect();
    const edge = box.getBoundingClientRect().top;
    const moved = isFromTop ? bottom - edge - anchor.bottom : top - edge - anchor.top;
    if (Math.abs(moved) >= 1) box.scrollTop += moved;
  }

  /** The first entry of which something is in sight; they stand below each other, so it is found by halves. */
  #note(box: HTMLElement): void {
    const list = entries(box);
    const edge = box.getBoundingClientRect().top;
    let [low, high] = [0, list.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((list[middle]?.getBoundingClientRect().bottom ?? 0) > edge) high = middle;
      else low = middle + 1;
    }
    const found = list[low];
    if (!found) return void (this.#anchor = undefined);
    const { top, bottom } = found.getBoundingClientRect();
    this.#anchor = { key: found.dataset['key'] ?? '', top: top - edge, bottom: bottom - edge };
  }
}

function entries(box: HTMLElement): HTMLElement[] {
  return [...box.querySelectorAll<HTMLElement>(':scope > .entries > [data-key]')];
}
