// Code block: code with its language and a copy button.
import { Component } from 'preact';
import { CopyButton } from '../../components/copy-button';
import { showInvisible } from '../../components/visible-text';
import { HighlightedText } from '../../highlight/highlighted-text';
import { text } from '../../text';
import { isUnifiedDiff, MAX_COLOURED_DIFF_CHARS, UnifiedDiff } from './unified-diff';

/** Code is rendered in chunks of this size, so that only the last one changes while it grows. */
const CHUNK_CHARS = 4 * 1024;

export function CodeBlock({ language, code }: { language: string; code: string }) {
  const name = language || text.transcript.code;
  const isPatch = language === 'diff' || language === 'patch' || (!language && isUnifiedDiff(code));
  const shownLanguage = isPatch ? 'diff' : language;
  return (
    <figure class="code-block">
      <figcaption>
        <span>{name}</span>
        <CopyButton content={() => code} label={text.transcript.copyCode} />
      </figcaption>
      <pre tabIndex={0} aria-label={name}>
        <code>{isPatch && code.length <= MAX_COLOURED_DIFF_CHARS ? <UnifiedDiff diff={code} /> : shownLanguage ? <HighlightedText code={code} language={shownLanguage} /> : <CodeText code={code} />}</code>
      </pre>
    </figure>
  );
}

/** Preformatted text of any length. */
export function CodeText({ code }: { code: string }) {
  if (code.length <= CHUNK_CHARS) return <>{showInvisible(code)}</>;
  return (
    <>
      {splitIntoChunks(code).map((part, index) => (
        <CodeChunk key={index} code={part} />
      ))}
    </>
  );
}

/** Splits at line ends, at positions that do not move while the code grows. */
function splitIntoChunks(code: string): string[] {
  const chunks: string[] = [];
  let from = 0;
  while (code.length - from > CHUNK_CHARS) {
    const end = code.indexOf('\n', from + CHUNK_CHARS);
    if (end < 0) break;
    chunks.push(code.slice(from, end));
    from = end + 1;
  }
  return [...chunks, code.slice(from)];
}

/** A block element of its own, so that the browser does not lay out earlier chunks again. */
class CodeChunk extends Component<{ code: string }> {
  override shouldComponentUpdate({ code }: { code: string }): boolean {
    return code !== this.props.code;
  }

  render() {
    return <span class="code-part">{showInvisible(this.props.code)}</span>;
  }
}
