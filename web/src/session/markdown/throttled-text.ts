// Throttled text: rerenders growing text less often the longer it is.
import { useEffect, useRef, useState } from 'preact/hooks';

/** Shorter text is shown on every frame. */
const UNTHROTTLED_CHARS = 8 * 1024;
const DELAY_MS_PER_CHAR = 1 / 400;
const MAX_DELAY_MS = 400;

/** The text to show now. Complete text is shown at once. */
export function useThrottledText(text: string, isComplete: boolean): string {
  const shown = useRef({ text, at: 0 });
  const [, draw] = useState(0);
  const delay = unfinishedLength(text) <= UNTHROTTLED_CHARS ? 0 : Math.min(MAX_DELAY_MS, unfinishedLength(text) * DELAY_MS_PER_CHAR);
  const remainingMs = shown.current.at + delay - performance.now();
  if (isComplete || remainingMs <= 0 || !text.startsWith(shown.current.text)) shown.current = { text, at: performance.now() };
  const isBehind = shown.current.text !== text;
  useEffect(() => {
    if (!isBehind) return undefined;
    const timer = setTimeout(() => draw((count) => count + 1), Math.max(0, remainingMs));
    return () => clearTimeout(timer);
  }, [isBehind, text]);
  return shown.current.text;
}

/** About how much is parsed again on each change: the text after the last empty line. */
function unfinishedLength(text: string): number {
  return text.length - Math.max(0, text.lastIndexOf('\n\n'));
}
