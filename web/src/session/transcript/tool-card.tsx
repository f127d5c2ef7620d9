// Tool card: one tool call, with its input, output and changes.
import { useMemo, useState } from 'preact/hooks';
import { CopyButton } from '../../components/copy-button';
import { Icon } from '../../components/icon';
import type { IconName } from '../../components/icon';
import { showInvisibleExceptJoiners } from '../../components/visible-text';
import { text } from '../../text';
import { CodeText } from '../markdown/code-block';
import { isUnifiedDiff, MAX_COLOURED_DIFF_CHARS, UnifiedDiff } from '../markdown/unified-diff';
import type { ToolEntry } from '../timeline';
import { countLines, FileDiff } from './file-diff';
import { parseToolOutput } from './tool-output';
import type { ToolOutput } from './tool-output';

const ICONS: Readonly<Record<string, IconName>> = {
  read: 'file',
  edit: 'pencil',
  delete: 'trash',
  move: 'right',
  search: 'search',
  execute: 'terminal',
  think: 'bulb',
  fetch: 'globe',
};
const STATUS_BADGES: Readonly<Record<string, string>> = { running: 'accent', completed: 'good', failed: 'error', denied: 'warn' };
/** Smaller changes are shown unfolded. */
const AUTO_OPEN_LINES = 40;
/** Longer text is shortened until expanded. */
const MAX_CHARS = 4_000;
const MAX_LINES = 40;

export function ToolCard({ entry: { tool } }: { entry: ToolEntry }) {
  const output = useMemo(() => parseToolOutput(tool.output), [tool.output]);
  const lineCounts = useMemo(() => countLines(output.changes), [output]);
  const isSmallChange = output.changes.length > 0 && lineCounts.added + lineCounts.removed <= AUTO_OPEN_LINES;
  const [userChoice, setUserChoice] = useState<boolean>();
  const isOpen = userChoice ?? isSmallChange;
  return (
    <details class="tool" open={isOpen} onToggle={(event) => event.currentTarget.open !== isOpen && setUserChoice(event.currentTarget.open)}>
      <summary>
        <Icon name={ICONS[tool.kind] ?? 'tool'} />
        <span class="tool-title">
          <span class="visually-hidden">{text.transcript.kinds[tool.kind] ?? text.transcript.tool} </span>
          {showInvisibleExceptJoiners(tool.title || tool.name)}
        </span>
        {output.changes.length > 0 && (
          <span class="soft small" aria-label={text.transcript.changed(lineCounts.added, lineCounts.removed)}>
            {text.transcript.plusMinus(lineCounts.added, lineCounts.removed)}
          </span>
        )}
        <span class={`badge ${STATUS_BADGES[tool.status] ?? ''}`} data-status={tool.status}>
          {text.transcript.status[tool.status] ?? tool.status}
        </span>
      </summary>
      {isOpen && <ToolContent input={tool.input} output={output} />}
    </details>
  );
}

function ToolContent({ input, output }: { input: unknown; output: ToolOutput }) {
  const inputText = useMemo(() => parseToolOutput(input), [input]);
  const isEmpty = !inputText.text && !output.text && output.changes.length + output.locations.length + output.terminals.length === 0;
  return (
    <div class="tool-inside">
      {isEmpty && <p class="soft small">{text.transcript.nothing}</p>}
      {/* The input of an edit is what the diff shows. */}
      {inputText.text && output.changes.length === 0 && <OutputText name={text.transcript.input} content={inputText.text} />}
      {output.changes.map((change, index) => (
        <FileDiff key={`${index}:${change.path}`} change={change} />
      ))}
      {output.text && <OutputText name={text.transcript.output} content={output.text} />}
      {output.locations.length > 0 && output.changes.length === 0 && (
        <ul class="plain locations small mono" aria-label={text.transcript.locations}>
          {output.locations.map(({ path, line }) => (
            <li key={`${path}:${line}`}>{text.transcript.location(path, line)}</li>
          ))}
        </ul>
      )}
      {output.terminals.map((id) => (
        <p key={id} class="soft small">
          {text.transcript.terminal(id)}
        </p>
      ))}
    </div>
  );
}

/** Preformatted text, shortened if it is long. */
function OutputText({ name, content }: { name: string; content: string }) {
  const [isExpanded, setExpanded] = useState(false);
  const short = useMemo(() => shorten(content), [content]);
  const shown = isExpanded ? content : short;
  return (
    <figure class="code-block">
      <figcaption>
        <span>{name}</span>
        <CopyButton content={() => content} />
      </figcaption>
      <pre tabIndex={0} aria-label={name}>
        <code>{content.length <= MAX_COLOURED_DIFF_CHARS && isUnifiedDiff(content) ? <UnifiedDiff diff={shown} /> : <CodeText code={shown} />}</code>
      </pre>
      {shown !== content && (
        <button type="button" class="quiet-button" onClick={() => setExpanded(true)}>
          {text.transcript.showAllOf(content.split('\n').length)}
        </button>
      )}
    </figure>
  );
}

/** The beginning of a long text. */
function shorten(content: string): string {
  let end = -1;
  for (let lines = 0; lines < MAX_LINES; lines += 1) {
    end = content.indexOf('\n', end + 1);
    if (end < 0) break;
  }
  const short = end < 0 ? content : content.slice(0, end);
  const all = short.length > MAX_CHARS ? short.slice(0, MAX_CHARS) : short;
  // A few more characters are not worth a button.
  return content.length - all.length < 200 ? content : all;
}
