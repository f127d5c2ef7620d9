// A block of code.
import { Component } from 'preact';
import { plainly } from '../../parts/plainly';
import { text } from '../../text';
import { isDiff, PatchText } from './patch';
import { CopyButton } from './copy';

/** Code is shown in parts of so many characters, of which only the last changes while it grows. */
const PART_CHARS = 4 * 1024;
/** Longer changes are shown without colours. */
const DIFF_CHARS = 64 * 1024;

export function CodeBlock({ language, code }: { language: string; code: string }) {
  const name = language || text.transcript.code;
  const isPatch = code.length <= DIFF_CHARS && (language === 'diff' || language === 'patch' || (!language && isDiff(code)));
  return (
    <figure class="code-block">
      <figcaption>
        <span>{name}</span>
        <CopyButton what={() => code} label={text.transcript.copyCode} />
      </figcaption>
      <pre tabIndex={0} aria-label={name}>
        <code>{isPatch ? <PatchText patch={code} /> : <CodeText code={code} />}</code>
      </pre>
    </figure>
  );
}

/** Text that is kept as it was written, however long it is. */
export function CodeText({ code }: { code: string }) {
  if (code.length <= PART_CHARS) return <>{plainly(code)}</>;
  return (
    <>
      {parts(code).map((part, place) => (
        <Part key={place} code={part} />
      ))}
    </>
  );
}

/** Cut at the ends of lines, and at the same places however far the code has come. */
function parts(code: string): string[] {
  const cut: string[] = [];
  let from = 0;
  while (code.length - from > PART_CHARS) {
    const end = code.indexOf('\n', from + PART_CHARS);
    if (end < 0) break;
    cut.push(code.slice(from, end));
    from = end + 1;
  }
  return [...cut, code.slice(from)];
}

/** A block of its own, so that the browser need not lay out those before it again. */
class Part extends Component<{ code: string }> {
  override shouldComponentUpdate({ code }: { code: string }): boolean {
    return code !== this.props.code;
  }

  render() {
    return <span class="code-part">{plainly(this.props.code)}</span>;
  }
}
