// Addresses that are written down in one place and used in another: `[here][1]`, and below `[1]: https://…`.
import type { Links } from 'marked';
import type { Piece } from './pieces';
import { read } from './tokens';

/** More of them are not looked at. */
const MOST = 200;
const DEFINES = /^ {0,3}\[[^\]\n]+\]:/m;

export class References {
  readonly #defined = new WeakMap<Piece, Links>();
  /** What a piece was given before: the same object as long as the same is in it. */
  readonly #given = new Map<number, { key: string; links: Links }>();

  /** What each piece is to know of the others. */
  of(pieces: readonly Piece[]): (piece: Piece) => Links | undefined {
    const all = this.#all(pieces);
    const labels = Object.keys(all);
    if (labels.length === 0) return () => undefined;
    return (piece) => this.#links(piece, all, labels);
  }

  /** The first definition of a label counts. */
  #all(pieces: readonly Piece[]): Links {
    const all: Links = {};
    let left = MOST;
    for (const piece of pieces) {
      if (left <= 0) break;
      for (const [label, link] of Object.entries(this.#of(piece))) {
        if (label in all || left <= 0) continue;
        all[label] = link;
        left -= 1;
      }
    }
    return all;
  }

  #of(piece: Piece): Links {
    if (piece.kind === 'code' || !piece.source.includes(']:') || !DEFINES.test(piece.source)) return {};
    const known = this.#defined.get(piece) ?? read(piece.source)?.links ?? {};
    this.#defined.set(piece, known);
    return known;
  }

  #links(piece: Piece, all: Links, labels: readonly string[]): Links | undefined {
    if (piece.kind === 'code' || !piece.source.includes('[')) return undefined;
    const source = piece.source.toLowerCase().replace(/\s+/g, ' ');
    const used = labels.filter((label) => source.includes(`[${label}]`));
    if (used.length === 0) return undefined;
    const links = Object.fromEntries(used.map((label) => [label, all[label]])) as Links;
    const key = JSON.stringify(links);
    const before = this.#given.get(piece.start);
    if (before?.key === key) return before.links;
    this.#given.set(piece.start, { key, links });
    return links;
  }
}
