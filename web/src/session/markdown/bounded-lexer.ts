// Bounded lexer: runs marked on one segment within limits, so that no answer can freeze the page.
import { Lexer } from 'marked';
import type { Links, Token } from 'marked';

/** Longer segments are shown as plain text. */
const MAX_SEGMENT_CHARS = 64 * 1024;
/** Longer paragraphs and other inline text are shown as plain text. */
const MAX_INLINE_CHARS = 8 * 1024;
/** The deepest nesting of quotes and lists that is parsed. */
const MAX_NESTING = 24;
const TOO_DEEP = new RegExp(`^(?:[ \\t]*(?:>|[-*+](?=[ \\t])|\\d{1,9}[.)](?=[ \\t]))){${MAX_NESTING}}|^[ \\t]{${MAX_NESTING * 4},}[-*+>\\d]`, 'm');
/** Embedded images may be large and are quick to lex, so they do not count. */
const INLINE_IMAGE = /\(data:image\/[a-z]+;base64,[A-Za-z0-9+/=]+\)/g;

/** The tokens of a segment and the link references it defines. */
export interface LexedSegment {
  readonly tokens: readonly Token[];
  readonly links: Links;
}

/** Undefined if the segment is to be shown as plain text. `links`: references that other segments define. */
export function lexSegment(source: string, links: Links = {}): LexedSegment | undefined {
  if (lexedLength(source) > MAX_SEGMENT_CHARS || TOO_DEEP.test(source)) return undefined;
  try {
    const lexer = new Lexer({ gfm: true });
    Object.assign(lexer.tokens.links, links);
    lexer.blockTokens(source.replace(/\r\n?/g, '\n'), lexer.tokens);
    const own = { ...lexer.tokens.links };
    for (const { src, tokens } of lexer.inlineQueue) {
      if (lexedLength(src) > MAX_INLINE_CHARS) tokens.push({ type: 'text', raw: src, text: src, escaped: true });
      else lexer.inlineTokens(src, tokens);
    }
    return { tokens: lexer.tokens, links: own };
  } catch (error) {
    // Stack overflow: nested too deeply.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function lexedLength(source: string): number {
  return source.length <= MAX_INLINE_CHARS ? source.length : source.replace(INLINE_IMAGE, '').length;
}
