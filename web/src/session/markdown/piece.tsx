// One piece of a text in markdown.
import type { Links } from 'marked';
import { CodeBlock, CodeText } from './code';
import type { Piece } from './pieces';
import { read } from './tokens';
import { blocks } from './vnodes';

/** The elements of one piece. */
export function pieceVnodes(piece: Piece, links?: Links) {
  if (piece.kind === 'code') return <CodeBlock language={piece.language} code={piece.code} />;
  const known = read(piece.source, links);
  if (known) return <>{blocks(known.tokens)}</>;
  return (
    <p class="raw" dir="auto">
      <CodeText code={piece.source.trimEnd()} />
    </p>
  );
}
