// Render segment: the elements of one markdown segment.
import type { Links } from 'marked';
import { lexSegment } from './bounded-lexer';
import { CodeBlock, CodeText } from './code-block';
import { renderBlocks } from './render-tokens';
import type { Segment } from './segmenter';

export function renderSegment(segment: Segment, links?: Links) {
  if (segment.kind === 'code') return <CodeBlock language={segment.language} code={segment.code} />;
  const parsed = lexSegment(segment.source, links);
  if (parsed) return <>{renderBlocks(parsed.tokens)}</>;
  return (
    <p class="raw" dir="auto">
      <CodeText code={segment.source.trimEnd()} />
    </p>
  );
}
