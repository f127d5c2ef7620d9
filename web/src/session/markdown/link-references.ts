// Link references: resolves `[text][label]` against a `[label]: url` in another segment.
import type { Links } from 'marked';
import { lexSegment } from './bounded-lexer';
import type { Segment } from './segmenter';

/** Further definitions are ignored. */
const MAX_REFERENCES = 200;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;

export class LinkReferences {
  readonly #defined = new WeakMap<Segment, Links>();
  /** The links last returned for a segment, so that equal links stay the same object. */
  readonly #lastLinks = new Map<number, { key: string; links: Links }>();

  /** The links that each segment uses from all segments. */
  linksBySegment(segments: readonly Segment[]): (segment: Segment) => Links | undefined {
    const all = this.#allDefinitions(segments);
    const labels = Object.keys(all);
    if (labels.length === 0) return () => undefined;
    return (segment) => this.#linksUsedBy(segment, all, labels);
  }

  /** The first definition of a label wins. */
  #allDefinitions(segments: readonly Segment[]): Links {
    const all: Links = {};
    let remaining = MAX_REFERENCES;
    for (const segment of segments) {
      if (remaining <= 0) break;
      for (const [label, link] of Object.entries(this.#definitionsIn(segment))) {
        if (label in all || remaining <= 0) continue;
        all[label] = link;
        remaining -= 1;
      }
    }
    return all;
  }

  #definitionsIn(segment: Segment): Links {
    if (segment.kind === 'code' || !segment.source.includes(']:') || !DEFINITION.test(segment.source)) return {};
    const definitions = this.#defined.get(segment) ?? lexSegment(segment.source)?.links ?? {};
    this.#defined.set(segment, definitions);
    return definitions;
  }

  #linksUsedBy(segment: Segment, all: Links, labels: readonly string[]): Links | undefined {
    if (segment.kind === 'code' || !segment.source.includes('[')) return undefined;
    const source = segment.source.toLowerCase().replace(/\s+/g, ' ');
    const used = labels.filter((label) => source.includes(`[${label}]`));
    if (used.length === 0) return undefined;
    const links = Object.fromEntries(used.map((label) => [label, all[label]])) as Links;
    const key = JSON.stringify(links);
    const before = this.#lastLinks.get(segment.start);
    if (before?.key === key) return before.links;
    this.#lastLinks.set(segment.start, { key, links });
    return links;
  }
}
