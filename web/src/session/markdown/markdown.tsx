// A text in markdown, also one that grows.
import { Component } from 'preact';
import { useRef } from 'preact/hooks';
import type { Links } from 'marked';
import { pieceVnodes } from './piece';
import { Pieces } from './pieces';
import type { Piece } from './pieces';
import { References } from './references';
import { useSteady } from './steady';

export function Markdown({ text, isComplete }: { text: string; isComplete: boolean }) {
  const known = useRef<{ pieces: Pieces; references: References } | undefined>(undefined);
  known.current ??= { pieces: new Pieces(), references: new References() };
  const { pieces, references } = known.current;
  const list = pieces.of(useSteady(text, isComplete));
  const links = references.of(list);
  return (
    <div class="markdown">
      {list.map((piece) => (
        <PieceView key={piece.start} piece={piece} links={links(piece)} />
      ))}
    </div>
  );
}

interface Shown {
  piece: Piece;
  links: Links | undefined;
}

/** Drawn again only if its text is another one: the last piece is made anew each time. */
class PieceView extends Component<Shown> {
  override shouldComponentUpdate({ piece, links }: Shown): boolean {
    const { piece: before } = this.props;
    return links !== this.props.links || (piece !== before && !isSame(piece, before));
  }

  render() {
    return pieceVnodes(this.props.piece, this.props.links);
  }
}

function isSame(one: Piece, other: Piece): boolean {
  if (one.kind === 'text') return other.kind === 'text' && one.source === other.source;
  return other.kind === 'code' && one.code === other.code && one.language === other.language;
}
