// Highlighter: the tokens of code that may still grow. Loaded when the first code is shown.
import { languageOf } from './language';
import type { Language } from './language';
import { highlightLine } from './lexer';
import type { HighlightedLine, LineState } from './tokens';

export { languageOf } from './language';
export { highlightLine } from './lexer';

/** Lines between two looks at the clock. */
const LINES_PER_CHECK = 64;

/** The lines of one text, lexed in order and no further than asked for. */
export class CodeHighlighter {
  readonly #language: Language;
  #lines: readonly string[] = [];
  #done: HighlightedLine[] = [];

  constructor(language: Language) {
    this.#language = language;
  }

  /** For a language by name; undefined if it has no rules. */
  static of(name: string): CodeHighlighter | undefined {
    const language = languageOf(name);
    return language && new CodeHighlighter(language);
  }

  /** Sets the text. Lines that are the same as before keep their tokens. */
  setLines(lines: readonly string[]): void {
    let same = 0;
    // The last line may have grown; so may one whose text is the beginning of a longer one.
    while (same < this.#done.length && same < lines.length && lines[same] === this.#lines[same]) same += 1;
    this.#done.length = same;
    this.#lines = lines;
  }

  /** The tokens of some lines. Lexes everything before them first. */
  slice(from: number, to: number): readonly HighlightedLine[] {
    this.advance(to);
    return this.#done.slice(from, Math.min(to, this.#lines.length));
  }

  /** Lexes up to a line, but no longer than `budgetMs`. True once it is done. */
  advance(to: number, budgetMs = Infinity): boolean {
    const end = Math.min(to, this.#lines.length);
    const until = performance.now() + budgetMs;
    while (this.#done.length < end) {
      const state: LineState = this.#done.at(-1)?.state;
      this.#done.push(highlightLine(this.#lines[this.#done.length] ?? '', this.#language, state));
      if (this.#done.length % LINES_PER_CHECK === 0 && performance.now() > until) return false;
    }
    return true;
  }

  /** The tokens of a line, if it was reached. */
  line(index: number): HighlightedLine | undefined {
    return this.#done[index];
  }
}
