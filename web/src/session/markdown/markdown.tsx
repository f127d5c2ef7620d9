// Markdown: renders markdown, also while it grows.
import { Component } from 'preact';
import { useRef } from 'preact/hooks';
import type { Links } from 'marked';
import { LinkReferences } from './link-references';
import { renderSegment } from './render-segment';
import { Segmenter } from './segmenter';
import type { Segment } from './segmenter';
import { useThrottledText } from './throttled-text';

export function Markdown({ text, isComplete }: { text: string; isComplete: boolean }) {
  const state = useRef<{ segmenter: Segmenter; references: LinkReferences } | undefined>(undefined);
  state.current ??= { segmenter: new Segmenter(), references: new LinkReferences() };
  const { segmenter, references } = state.current;
  const list = segmenter.segments(useThrottledText(text, isComplete));
  const links = references.linksBySegment(list);
  return (
    <div class="markdown">
      {list.map((segment) => (
        <SegmentView key={segment.start} segment={segment} links={links(segment)} />
      ))}
    </div>
  );
}

interface SegmentViewProps {
  segment: Segment;
  links: Links | undefined;
}

/** Rerenders only if its text has changed: the last segment is a new object each time. */
class SegmentView extends Component<SegmentViewProps> {
  override shouldComponentUpdate({ segment, links }: SegmentViewProps): boolean {
    const { segment: before } = this.props;
    return links !== this.props.links || (segment !== before && !hasSameText(segment, before));
  }

  render() {
    return renderSegment(this.props.segment, this.props.links);
  }
}

function hasSameText(one: Segment, other: Segment): boolean {
  if (one.kind === 'text') return other.kind === 'text' && one.source === other.source;
  return other.kind === 'code' && one.code === other.code && one.language === other.language;
}
