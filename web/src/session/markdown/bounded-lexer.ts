// What marked makes of a piece of text, kept within bounds: nobody's answer may bring the page to a halt.
import { Lexer } from 'marked';
import type { Links, Token } from 'marked';

/** A piece with more characters is shown as it is. */
export const PIECE_CHARS = 64 * 1024;
/** A paragraph, or whatever else has no blocks in it, with more characters is shown as it is. */
const INLINE_CHARS = 8 * 1024;
/** So many quotes and lists in each other are read. */
const LEVELS = 24;
const DEEP = new RegExp(`^(?:[ \\t]*(?:>|[-*+](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${LEVELS}}|^[ \\t]{${LEVELS * 4},}[-*+>\\d]`, 'm');
/** A picture inside the text may be large, and is read quickly. */
const PICTURE = /\(data:image\/[a-z]+;base64,[A-Za-z0-9+/=]+\)/g;

/** What a piece consists of, and the addresses that it defines; nothing if it is to be shown as it is. */
export interface Read {
  readonly tokens: readonly Token[];
  readonly links: Links;
}

/** `links`: addresses that other pieces define. */
export function read(source: string, links: Links = {}): Read | undefined {
  if (weight(source) > PIECE_CHARS || DEEP.test(source)) return undefined;
  try {
    const lexer = new Lexer({ gfm: true });
    Object.assign(lexer.tokens.links, links);
    lexer.blockTokens(source.replace(/\r\n?/g, '\n'), lexer.tokens);
    const own = { ...lexer.tokens.links };
    for (const { src, tokens } of lexer.inlineQueue) {
      if (weight(src) > INLINE_CHARS) tokens.push({ type: 'text', raw: src, text: src, escaped: true });
      else lexer.inlineTokens(src, tokens);
    }
    return { tokens: lexer.tokens, links: own };
  } catch (error) {
    // Too deep for the stack.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function weight(source: string): number {
  return source.length <= INLINE_CHARS ? source.length : source.replace(PICTURE, '').length;
}
