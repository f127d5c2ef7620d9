// Search jump: shows the entry that a search found, and marks the words in it.
import { useEffect } from 'preact/hooks';
import { route } from '../../route';
import type { OpenSession } from '../open-session';
import type { Entry } from '../timeline';
import type { ScrollPosition } from './scroll-position';
import { findWords, highlight } from './text-highlight';

/** How often to look for an entry that is being rendered. */
const MAX_FRAMES = 120;
const FLASH_CLASS = 'found';

/** Follows the route: jumps when it names an offset. */
export function useSearchJump(session: OpenSession, scroll: ScrollPosition): void {
  const current = route.value;
  const at = current.page === 'session' && current.id === session.id ? current.at : undefined;
  const words = current.page === 'session' ? (current.words ?? '') : '';
  useEffect(() => {
    if (at === undefined) return undefined;
    let isCurrent = true;
    void session.loadThrough(at).then(() => {
      const entry = entryAt(session.timeline.value.entries, at);
      if (isCurrent && entry) showEntry(entry.key, words, scroll, () => isCurrent);
    });
    return () => {
      isCurrent = false;
      highlight('search-hit', []);
    };
  }, [session, at, words]);
}

/** The entry that an event belongs to; a prompt or an answer if several do. */
function entryAt(entries: readonly Entry[], offset: number): Entry | undefined {
  const around = entries.filter((entry) => entry.offset <= offset && offset <= entry.through);
  const isText = ({ kind }: Entry) => kind === 'answer' || kind === 'prompt';
  return around.find(isText) ?? around[0] ?? entries.find((entry) => entry.offset >= offset);
}

function showEntry(key: string, words: string, scroll: ScrollPosition, isCurrent: () => boolean, frame = 0): void {
  requestAnimationFrame(() => {
    if (!isCurrent()) return;
    const element = document.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
    if (!element) return frame < MAX_FRAMES ? showEntry(key, words, scroll, isCurrent, frame + 1) : undefined;
    const ranges = findWords(element, words.split(/[^\p{L}\p{N}]+/u));
    scroll.toElement(element, ranges[0]);
    highlight('search-hit', ranges);
    element.classList.remove(FLASH_CLASS);
    void element.offsetWidth;
    element.classList.add(FLASH_CLASS);
  });
}
