// Lexer: splits one line of code into tokens. One pass over the line; no rule looks back or ahead further than
// its own match, so that the time grows with the length of the line.
import type { Delimited, Language } from './language';
import { TokenList } from './tokens';
import type { HighlightedLine, LineState, Token, TokenKind } from './tokens';

/** Longer lines are plain: they are data, not code. */
const MAX_LINE_CHARS = 2_000;
const NUMBER = /(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)\w*/y;
const SPACE = /\s+/y;
const OTHER = /[^\p{L}\p{N}\s"'`]/uy;
const ATTRIBUTE = /[\p{L}_:@*][\p{L}\p{N}_:.@-]*/uy;

/** The tokens of a line that begins in `state`. */
export function highlightLine(line: string, language: Language, state: LineState): HighlightedLine {
  if (line.length > MAX_LINE_CHARS) return { tokens: line === '' ? [] : [{ text: line }], state };
  if (language.isPatch) return { tokens: patchLine(line), state: undefined };
  return new Lexer(line, language).run(state);
}

function patchLine(line: string): Token[] {
  if (line === '') return [];
  const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : /^(?:@@|diff |index )/.test(line) ? 'key' : undefined;
  return [kind ? { text: line, kind } : { text: line }];
}

class Lexer {
  readonly #out = new TokenList();
  #at = 0;
  #state: LineState;

  constructor(readonly line: string, readonly language: Language) {}

  run(state: LineState): HighlightedLine {
    if (state !== undefined) this.#continue(state);
    else this.#takeLeadingKey();
    while (this.#at < this.line.length) this.#next();
    return { tokens: this.#out.tokens, state: this.#state };
  }

  #next(): void {
    if (this.language.isMarkup && this.#takeTag()) return;
    if (this.#takeComment() || this.#takeString()) return;
    if (this.language.isMarkup) return this.#take(1);
    if (this.#takeMatch(SPACE)) return;
    const special = this.language.special;
    if (special && this.#takeMatch(special.pattern, special.kind)) return;
    if (this.#takeWord() || this.#takeMatch(NUMBER, 'number') || this.#takeMatch(OTHER)) return;
    this.#take(1);
  }

  /** Goes on with a comment or string of the lines before. */
  #continue(state: string): void {
    const { blockComments, strings } = this.language;
    const comment = blockComments.find(({ close }) => `c${close}` === state);
    const string = comment ? undefined : strings.find(({ close }) => `s${close}` === state);
    const open = comment ?? string;
    if (open) this.#takeUntil(open, 0, comment ? 'comment' : 'string', state);
  }

  #takeComment(): boolean {
    const { line, language } = this;
    const block = language.blockComments.find(({ open }) => line.startsWith(open, this.#at));
    if (block) {
      this.#takeUntil(block, block.open.length, 'comment', `c${block.close}`);
      return true;
    }
    const isLineComment = language.lineComments.some((mark) => line.startsWith(mark, this.#at));
    const isAllowed = !language.commentsNeedSpace || this.#at === 0 || /\s/.test(line[this.#at - 1] ?? '');
    if (!isLineComment || !isAllowed) return false;
    this.#take(line.length - this.#at, 'comment');
    return true;
  }

  #takeString(): boolean {
    const { line, language } = this;
    const string = language.strings.find(({ open }) => line.startsWith(open, this.#at));
    if (!string || (language.isMarkup ?? false)) return false;
    const from = this.#at;
    const end = this.#endOf(string, string.open.length);
    // A lone quote in text is no string.
    if (end < 0 && !string.isMultiline) {
      this.#take(string.open.length);
      return true;
    }
    const isKey = language.hasColonKeys === true && end >= 0 && /^\s*:/.test(line.slice(end));
    if (isKey) this.#take(end - from, 'key');
    else this.#takeUntil(string, string.open.length, 'string', `s${string.close}`);
    return true;
  }

  /** Takes a delimited piece; if it does not end here, the next line goes on. */
  #takeUntil(delimited: Delimited, skip: number, kind: TokenKind, state: string): void {
    const end = this.#endOf(delimited, skip);
    this.#state = end < 0 && delimited.isMultiline ? state : undefined;
    this.#take((end < 0 ? this.line.length : end) - this.#at, kind);
  }

  /** The index behind the end of a delimited piece, or -1. */
  #endOf({ close, hasEscapes }: Delimited, skip: number): number {
    for (let index = this.#at + skip; index < this.line.length; index += 1) {
      if (hasEscapes && this.line[index] === '\\') index += 1;
      else if (this.line.startsWith(close, index)) return index + close.length;
    }
    return -1;
  }

  #takeWord(): boolean {
    const { line, language } = this;
    const word = this.#match(language.name);
    if (word === undefined) return false;
    this.#take(word.length, this.#kindOf(word, line.slice(this.#at + word.length)));
    return true;
  }

  #kindOf(word: string, rest: string): TokenKind | undefined {
    const { keywords, literals, types, hasCapitalTypes, hasColonKeys, isCaseless } = this.language;
    const key = isCaseless ? word.toLowerCase() : word;
    if (keywords.has(key)) return 'keyword';
    if (literals.has(key)) return 'literal';
    if (types.has(key)) return 'type';
    if (hasColonKeys && /^\s*:/.test(rest)) return 'key';
    if (/^\s*\(/.test(rest)) return 'function';
    return hasCapitalTypes && /^\p{Lu}/u.test(word) ? 'type' : undefined;
  }

  #takeLeadingKey(): void {
    const found = this.language.keyBefore?.exec(this.line);
    if (!found) return;
    const [, indent = '', key = ''] = found;
    this.#take(indent.length);
    this.#take(key.length, 'key');
  }

  /** `<name attribute="value">`, as far as it is on this line. */
  #takeTag(): boolean {
    const { line } = this;
    if (line[this.#at] !== '<' || !/^<[/!?]?[\p{L}]/u.test(line.slice(this.#at, this.#at + 4))) return false;
    const name = /^<[/!?]?[\p{L}\p{N}:._-]+/u.exec(line.slice(this.#at))?.[0] ?? '<';
    this.#take(name.length, 'tag');
    while (this.#at < line.length && line[this.#at] !== '>') {
      if (line.startsWith('/>', this.#at)) break;
      const quote = line[this.#at];
      if (quote === '"' || quote === "'") {
        const end = line.indexOf(quote, this.#at + 1);
        this.#take((end < 0 ? line.length : end + 1) - this.#at, 'string');
      } else if (!this.#takeMatch(ATTRIBUTE, 'key')) this.#take(1);
    }
    this.#take(line.startsWith('/>', this.#at) ? 2 : 1, 'tag');
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.line)?.[0] || undefined;
  }

  #takeMatch(pattern: RegExp, kind?: TokenKind): boolean {
    const found = this.#match(pattern);
    if (found === undefined) return false;
    this.#take(found.length, kind);
    return true;
  }

  #take(length: number, kind?: TokenKind): void {
    this.#out.add(this.line.slice(this.#at, this.#at + length), kind);
    this.#at += Math.max(length, 0);
  }
}
