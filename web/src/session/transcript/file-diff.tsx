// The changes in a file, line by line.
import { useMemo, useState } from 'preact/hooks';
import { plainly } from '../../parts/plainly';
import { text } from '../../text';
import { compare, fold } from './lines';
import type { Line, Part } from './lines';

/** More lines are shown only if somebody asks for them. */
const MOST_LINES = 400;
const MARKS = { kept: ' ', added: '+', removed: '−' } as const;

/** A file before and after; `before` is absent if it is new. */
export interface Change {
  readonly path: string;
  readonly before?: string;
  readonly after: string;
}

/** How many lines were added and removed. */
export function tally(changes: readonly Change[]): { added: number; removed: number } {
  const lines = changes.flatMap(({ before = '', after }) => compare(before, after));
  const many = (kind: Line['is']) => lines.filter(({ is }) => is === kind).length;
  return { added: many('added'), removed: many('removed') };
}

export function Diff({ change }: { change: Change }) {
  const { path, before, after } = change;
  const lines = useMemo(() => compare(before ?? '', after), [before, after]);
  const parts = useMemo(() => fold(lines), [lines]);
  const [isWhole, setWhole] = useState(false);
  const { added, removed } = tally([change]);
  const shown = isWhole ? parts : cut(parts);
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
              {shown.map((part, place) => (
                <PartRows key={place} part={part} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown !== parts && (
        <button type="button" class="quiet-button" onClick={() => setWhole(true)}>
          {text.transcript.showAllOf(lines.length)}
        </button>
      )}
    </figure>
  );
}

/** As many parts as fit, and at least one. */
function cut(parts: readonly Part[]): readonly Part[] {
  let lines = 0;
  const end = parts.findIndex(({ lines: more, isFolded }) => (lines += isFolded ? 1 : more.length) > MOST_LINES);
  if (end < 0) return parts;
  const [first] = parts;
  return end > 0 || !first ? parts.slice(0, end) : [{ ...first, lines: first.lines.slice(0, MOST_LINES) }];
}

function PartRows({ part: { lines, isFolded } }: { part: Part }) {
  const [isOpen, setOpen] = useState(false);
  if (!isFolded || isOpen) return <>{lines.map((line) => <Row key={`${line.old}:${line.now}`} line={line} />)}</>;
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

function Row({ line: { is, old, now, text: words } }: { line: Line }) {
  return (
    <tr class={is}>
      <td class="line-number">{old}</td>
      <td class="line-number">{now}</td>
      <td class="diff-mark">
        <span aria-hidden="true">{MARKS[is]}</span>
        {is !== 'kept' && <span class="heard">{is === 'added' ? text.transcript.added : text.transcript.removed}</span>}
      </td>
      <td class="line-text">{plainly(words)}</td>
    </tr>
  );
}
