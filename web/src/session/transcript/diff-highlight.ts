// Diff highlight: the tokens of both versions of a file, lexed in small steps.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type * as Highlighter from '../../highlight/highlighter';
import type { HighlightedLine } from '../../highlight/tokens';
import type { FileChange } from './file-change';
import type { DiffLine } from './line-diff';

const SLICE_MS = 8;

export class DiffHighlight {
  constructor(readonly oldText: Highlighter.CodeHighlighter, readonly newText: Highlighter.CodeHighlighter) {}

  /** The tokens of a line, if it was reached. */
  line({ kind, oldNumber, newNumber }: DiffLine): HighlightedLine | undefined {
    return kind === 'removed' ? this.oldText.line((oldNumber ?? 0) - 1) : this.newText.line((newNumber ?? 0) - 1);
  }
}

/** Undefined without rules for the language. Redraws as lines are reached. */
export function useDiffHighlight({ before = '', after }: FileChange, loaded: typeof Highlighter | undefined, language: string): DiffHighlight | undefined {
  const [reached, setReached] = useState(0);
  const highlight = useMemo(() => {
    const [oldText, newText] = [loaded?.CodeHighlighter.of(language), loaded?.CodeHighlighter.of(language)];
    if (!oldText || !newText) return undefined;
    oldText.setLines(before.split('\n'));
    newText.setLines(after.split('\n'));
    return new DiffHighlight(oldText, newText);
  }, [loaded, language, before, after]);
  useEffect(() => {
    if (!highlight) return undefined;
    let timer: ReturnType<typeof setTimeout>;
    const advance = () => {
      const isDone = highlight.newText.advance(Infinity, SLICE_MS) && highlight.oldText.advance(Infinity, SLICE_MS);
      setReached((count) => count + 1);
      if (!isDone) timer = setTimeout(advance);
    };
    advance();
    return () => clearTimeout(timer);
  }, [highlight]);
  // A new object for every redraw, so that rows that were plain get their colours.
  return useMemo(() => (highlight ? new DiffHighlight(highlight.oldText, highlight.newText) : undefined), [highlight, reached]);
}
