// Tool card: one tool call, with its input, output and changes.
import { useMemo, useState } from 'preact/hooks';
import { CopyButton } from '../../components/copy-button';
import { Icon } from '../../components/icon';
import type { IconName } from '../../components/icon';
import { showInvisibleExceptJoiners } from '../../components/visible-text';
import { HighlightedText } from '../../highlight/highlighted-text';
import { languageOfPath } from '../../highlight/language-of-path';
import { text } from '../../text';
import { CodeText } from '../markdown/code-block';
import { isUnifiedDiff, MAX_COLOURED_DIFF_CHARS, UnifiedDiff } from '../markdown/unified-diff';
import type { ToolEntry } from '../timeline';
import { useDiffs } from './file-change';
import type { Diff } from './file-change';
import { FileDiff, LineCounts } from './file-diff';
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
  const diffs = useDiffs(output.changes);
  const lineCounts = useMemo(() => sumOf(diffs ?? []), [diffs?.length, output]);
  const isSmallChange = output.changes.length > 0 && diffs !== undefined && lineCounts.added + lineCounts.removed <= AUTO_OPEN_LINES;
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
        {output.changes.length > 0 && diffs && <LineCounts diff={lineCounts} />}
        <span class={`badge ${STATUS_BADGES[tool.status] ?? ''}`} data-status={tool.status}>
          {text.transcript.status[tool.status] ?? tool.status}
        </span>
      </summary>
      {isOpen && <ToolContent kind={tool.kind} input={tool.input} output={output} diffs={diffs} />}
    </details>
  );
}

function sumOf(diffs: readonly Diff[]): Pick<Diff, 'added' | 'removed'> {
  return { added: diffs.reduce((sum, { added }) => sum + added, 0), removed: diffs.reduce((sum, { removed }) => sum + removed, 0) };
}

/** The language of what a tool has read, if it is one file. */
function languageOfOutput(kind: string, { locations, isData }: ToolOutput): string {
  if (isData) return 'json';
  return kind === 'read' && locations.length === 1 ? languageOfPath(locations[0]?.path ?? '') : '';
}

function ToolContent({ kind, input, output, diffs }: { kind: string; input: unknown; output: ToolOutput; diffs: readonly Diff[] | undefined }) {
  const inputText = useMemo(() => parseToolOutput(input), [input]);
  const isEmpty = !inputText.text && !output.text && output.changes.length + output.locations.length + output.terminals.length === 0;
  return (
    <div class="tool-inside">
      {isEmpty && <p class="soft small">{text.transcript.nothing}</p>}
      {/* The input of an edit is what the diff shows. */}
      {inputText.text && output.changes.length === 0 && <OutputText name={text.transcript.input} content={inputText.text} language={inputText.isData ? 'json' : ''} />}
      {output.changes.map((change, index) => (
        <FileDiff key={`${index}:${change.path}`} change={change} diff={diffs?.[index]} />
      ))}
      {output.text && <OutputText name={text.transcript.output} content={output.text} language={languageOfOutput(kind, output)} />}
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
function OutputText({ name, content, language }: { name: string; content: string; language: string }) {
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
        <code>{content.length <= MAX_COLOURED_DIFF_CHARS && isUnifiedDiff(content) ? <UnifiedDiff diff={shown} /> : language ? <HighlightedText code={shown} language={language} /> : <CodeText code={shown} />}</code>
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
