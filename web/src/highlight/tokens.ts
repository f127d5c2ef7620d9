// Tokens: what a highlighter makes of a line of code.

/** The kind of a piece of code; the stylesheet has a colour for each. */
export type TokenKind = 'comment' | 'string' | 'number' | 'keyword' | 'literal' | 'type' | 'function' | 'key' | 'tag' | 'variable' | 'added' | 'removed';

/** A piece of a line; without a kind it is plain. */
export interface Token {
  readonly text: string;
  readonly kind?: TokenKind;
}

/** What is open at the end of a line and goes on in the next one: the end of a comment or string. */
export type LineState = string | undefined;

export interface HighlightedLine {
  readonly tokens: readonly Token[];
  readonly state: LineState;
}

/** Collects tokens; joins neighbours of the same kind. */
export class TokenList {
  readonly tokens: Token[] = [];

  add(text: string, kind?: TokenKind): void {
    if (text === '') return;
    const last = this.tokens.at(-1);
    if (last && last.kind === kind) this.tokens[this.tokens.length - 1] = { ...last, text: last.text + text };
    else this.tokens.push(kind === undefined ? { text } : { text, kind });
  }
}
