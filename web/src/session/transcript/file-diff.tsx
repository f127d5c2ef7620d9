// File diff: the changes in a file, line by line.
import { useMemo, useState } from 'preact/hooks';
import { showInvisible } from '../../components/visible-text';
import { text } from '../../text';
import { diffLines, foldUnchanged } from './line-diff';
import type { DiffLine, DiffPart } from './line-diff';

/** Further lines are shown on demand. */
const MAX_LINES = 400;
const LINE_MARKS = { kept: ' ', added: '+', removed: '−' } as const;

/** `before` is absent if the file is new. */
export interface FileChange {
  readonly path: string;
  readonly before?: string;
  readonly after: string;
}

export function countLines(changes: readonly FileChange[]): { added: number; removed: number } {
  const lines = changes.flatMap(({ before = '', after }) => diffLines(before, after));
  const countKind = (kindToCount: DiffLine['kind']) => lines.filter(({ kind }) => kind === kindToCount).length;
  return { added: countKind('added'), removed: countKind('removed') };
}

export function FileDiff({ change }: { change: FileChange }) {
  const { path, before, after } = change;
  const lines = useMemo(() => diffLines(before ?? '', after), [before, after]);
  const parts = useMemo(() => foldUnchanged(lines), [lines]);
  const [isExpanded, setExpanded] = useState(false);
  const { added, removed } = countLines([change]);
  const shown = isExpanded ? parts : limitParts(parts);
  return (
    <figure class="change" aria-label={text.transcript.changes(path)}>
      <figcaption>
        <span class="mono">{path}</span>
        {before === undefined && <span class="badge">{text.transcript.newFile}</span>}
        <span class="soft" aria-label={text.transcript.changed(added, removed)}>
          {text.transcript.plusMinus(added, removed)}
        </span>
      </figcaption>
      {added + removed === 0 ? (
        <p class="soft small">{text.transcript.noChange}</p>
      ) : (
        <div class="diff-lines" tabIndex={0} role="group" aria-label={text.transcript.changes(path)}>
          <table>
            <tbody>
              {shown.map((part, index) => (
                <DiffPart key={index} part={part} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown !== parts && (
        <button type="button" class="quiet-button" onClick={() => setExpanded(true)}>
          {text.transcript.showAllOf(lines.length)}
        </button>
      )}
    </figure>
  );
}

/** As many parts as fit, but at least one. */
function limitParts(parts: readonly DiffPart[]): readonly DiffPart[] {
  let lines = 0;
  const end = parts.findIndex(({ lines: more, isFolded }) => (lines += isFolded ? 1 : more.length) > MAX_LINES);
  if (end < 0) return parts;
  const [first] = parts;
  return end > 0 || !first ? parts.slice(0, end) : [{ ...first, lines: first.lines.slice(0, MAX_LINES) }];
}

function DiffPart({ part: { lines, isFolded } }: { part: DiffPart }) {
  const [isOpen, setOpen] = useState(false);
  if (!isFolded || isOpen) return <>{lines.map((line) => <DiffLine key={`${line.oldNumber}:${line.newNumber}`} line={line} />)}</>;
  return (
    <tr class="folded">
      <td colSpan={4}>
        <button type="button" class="quiet-button" onClick={() => setOpen(true)}>
          {text.transcript.unchanged(lines.length)}
        </button>
      </td>
    </tr>
  );
}

function DiffLine({ line: { kind, oldNumber, newNumber, text: content } }: { line: DiffLine }) {
  return (
    <tr class={kind}>
      <td class="line-number">{oldNumber}</td>
      <td class="line-number">{newNumber}</td>
      <td class="diff-mark">
        <span aria-hidden="true">{LINE_MARKS[kind]}</span>
        {kind !== 'kept' && <span class="visually-hidden">{kind === 'added' ? text.transcript.added : text.transcript.removed}</span>}
      </td>
      <td class="line-text">{showInvisible(content)}</td>
    </tr>
  );
}
