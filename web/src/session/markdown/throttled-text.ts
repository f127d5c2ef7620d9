// A text that grows with every frame, shown less often the longer it is.
import { useEffect, useRef, useState } from 'preact/hooks';

/** Up to here each frame shows it. */
const SHORT_CHARS = 8 * 1024;
const MS_PER_CHAR = 1 / 400;
const LONGEST_MS = 400;

/** The text as it is to be shown now. A complete one is shown at once. */
export function useSteady(text: string, isComplete: boolean): string {
  const shown = useRef({ text, at: 0 });
  const [, draw] = useState(0);
  const pause = unfinished(text) <= SHORT_CHARS ? 0 : Math.min(LONGEST_MS, unfinished(text) * MS_PER_CHAR);
  const left = shown.current.at + pause - performance.now();
  if (isComplete || left <= 0 || !text.startsWith(shown.current.text)) shown.current = { text, at: performance.now() };
  const isBehind = shown.current.text !== text;
  useEffect(() => {
    if (!isBehind) return undefined;
    const timer = setTimeout(() => draw((count) => count + 1), Math.max(0, left));
    return () => clearTimeout(timer);
  }, [isBehind, text]);
  return shown.current.text;
}

/** How much of it is read again with each change, about: what follows the last empty line. */
function unfinished(text: string): number {
  return text.length - Math.max(0, text.lastIndexOf('\n\n'));
}
