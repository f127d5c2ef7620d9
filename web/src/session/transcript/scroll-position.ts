// Scroll position: keeps the reader at the end, or at the same entry, while the conversation grows at both
// ends.
import type { Signal } from '@preact/signals';
import { signal } from '@preact/signals';

/** A reader this close to the end counts as being there. */
const NEAR_PX = 24;
/** Older entries are loaded this many screens before the first one. */
const PRELOAD_SCREENS = 2;

/** The first visible entry and its position. */
interface Anchor {
  key: string;
  top: number;
  bottom: number;
}

export class ScrollPosition {
  /** Whether to stay at the end. */
  readonly isAtEnd: Signal<boolean> = signal(true);
  #box: HTMLElement | undefined;
  #anchor: Anchor | undefined;
  #lastTop = 0;
  #resized: ResizeObserver | undefined;

  /** `onNearTop`: load older entries. */
  constructor(readonly onNearTop: () => void) {}

  /** Watches a scrolling element and its content; the returned function stops. */
  attach(box: HTMLElement, content: HTMLElement): () => void {
    this.#box = box;
    this.#resized = new ResizeObserver(() => this.restore());
    this.#resized.observe(box);
    this.#resized.observe(content);
    box.addEventListener('scroll', this.#onScroll, { passive: true });
    this.restore();
    return () => {
      this.#resized?.disconnect();
      box.removeEventListener('scroll', this.#onScroll);
      this.#box = undefined;
    };
  }

  /** Scrolls to the end and stays there. */
  toEnd(): void {
    this.isAtEnd.value = true;
    this.restore();
  }

  /** Scrolls to an element, or to a range in it, and stays there. */
  toElement(element: HTMLElement, range?: Range): void {
    this.isAtEnd.value = false;
    const scroll = () => {
      const box = this.#box;
      if (!box) return;
      const { top } = (range ?? element).getBoundingClientRect();
      box.scrollTop += top - box.getBoundingClientRect().top - box.clientHeight / 4;
      this.#lastTop = box.scrollTop;
      this.#saveAnchor(box);
    };
    scroll();
    // Entries that were out of view have their real height only now.
    requestAnimationFrame(() => {
      scroll();
      requestAnimationFrame(scroll);
    });
  }

  /**
   * Call after any change: scrolls so that the reader sees the same entry. `hasGrownAtTop`: that entry may
   * have grown at its top.
   */
  restore(hasGrownAtTop = false): void {
    const box = this.#box;
    if (!box) return;
    if (this.isAtEnd.value) box.scrollTop = box.scrollHeight;
    else this.#restoreAnchor(box, hasGrownAtTop);
    this.#lastTop = box.scrollTop;
    this.#saveAnchor(box);
    this.#loadOlderIfNear(box);
  }

  readonly #onScroll = () => {
    const box = this.#box;
    if (!box) return;
    const { scrollTop } = box;
    const remaining = box.scrollHeight - scrollTop - box.clientHeight;
    if (remaining <= 2) this.isAtEnd.value = true;
    // Any upward scroll leaves the end: with a threshold the view would snap back while the user scrolls.
    else if (scrollTop < this.#lastTop) this.isAtEnd.value = false;
    else if (scrollTop > this.#lastTop) this.isAtEnd.value = remaining < NEAR_PX;
    this.#lastTop = scrollTop;
    this.#saveAnchor(box);
    this.#loadOlderIfNear(box);
  };

  #loadOlderIfNear(box: HTMLElement): void {
    if (box.clientHeight > 0 && box.scrollTop < PRELOAD_SCREENS * box.clientHeight) this.onNearTop();
  }

  #restoreAnchor(box: HTMLElement, hasGrownAtTop: boolean): void {
    const anchor = this.#anchor;
    const entry = anchor && entries(box).find((one) => one.dataset['key'] === anchor.key);
    if (!anchor || !entry) return;
    const { top, bottom } = entry.getBoundingClientRect();
    const edge = box.getBoundingClientRect().top;
    const moved = hasGrownAtTop ? bottom - edge - anchor.bottom : top - edge - anchor.top;
    if (Math.abs(moved) >= 1) box.scrollTop += moved;
  }

  /** The first visible entry, by binary search. */
  #saveAnchor(box: HTMLElement): void {
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
