// File diff: the changes in a file, line by line. Only the blocks of lines near the visible part are rendered.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { showInvisible } from '../../components/visible-text';
import { TokenLine } from '../../highlight/highlighted-text';
import { highlighter, loadHighlighter } from '../../highlight/lazy-highlighter';
import { languageOfPath } from '../../highlight/language-of-path';
import { text } from '../../text';
import type { Diff, FileChange } from './file-change';
import { foldUnchanged } from './line-diff';
import type { DiffLine } from './line-diff';
import { useDiffHighlight } from './diff-highlight';
import type { DiffHighlight } from './diff-highlight';

/** Further rows are shown on demand. */
const MAX_ROWS = 400;
/** Rows that are rendered and removed together. */
const BLOCK_ROWS = 80;
const ROW_PX = 20;
const NEAR_PX = 800;
const LINE_MARKS = { kept: ' ', added: '+', removed: '−' } as const;

/** A line, or unchanged lines that are folded. */
type Row = { readonly line: DiffLine } | { readonly fold: number; readonly lines: readonly DiffLine[] };

export function FileDiff({ change, diff }: { change: FileChange; diff: Diff | undefined }) {
  const { path, before } = change;
  useEffect(loadHighlighter, []);
  const [isExpanded, setExpanded] = useState(false);
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const all = useMemo(() => (diff ? rowsOf(diff.lines, unfolded) : []), [diff, unfolded]);
  const rows = isExpanded ? all : all.slice(0, MAX_ROWS);
  const highlight = useDiffHighlight(change, highlighter.value, languageOfPath(path));
  return (
    <figure class="change" aria-label={text.transcript.changes(path)}>
      <figcaption>
        <span class="mono">{path}</span>
        {before === undefined && <span class="badge">{text.transcript.newFile}</span>}
        {diff && <LineCounts diff={diff} />}
      </figcaption>
      {!diff && <p class="soft small" role="status">{text.common.loading}</p>}
      {diff && (diff.added + diff.removed === 0 ? <p class="soft small">{text.transcript.noChange}</p> : <DiffRows path={path} rows={rows} highlight={highlight} onUnfold={(fold) => setUnfolded(new Set([...unfolded, fold]))} />)}
      {rows.length < all.length && diff && (
        <button type="button" class="quiet-button" data-part="show-all-lines" onClick={() => setExpanded(true)}>
          {text.transcript.showAllOf(diff.lines.length)}
        </button>
      )}
    </figure>
  );
}

export function LineCounts({ diff: { added, removed } }: { diff: Pick<Diff, 'added' | 'removed'> }) {
  return (
    <span class="soft small">
      <span aria-hidden="true">{text.transcript.plusMinus(added, removed)}</span>
      <span class="visually-hidden">{text.transcript.changed(added, removed)}</span>
    </span>
  );
}

function rowsOf(lines: readonly DiffLine[], unfolded: ReadonlySet<number>): Row[] {
  return foldUnchanged(lines).flatMap((part, index): Row[] => (part.isFolded && !unfolded.has(index) ? [{ fold: index, lines: part.lines }] : part.lines.map((line) => ({ line }))));
}

interface RowsProps {
  path: string;
  rows: readonly Row[];
  highlight: DiffHighlight | undefined;
  onUnfold: (fold: number) => void;
}

function DiffRows({ path, rows, highlight, onUnfold }: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const blocks = [];
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    blocks.push(<DiffBlock key={from} box={box} rows={rows.slice(from, from + BLOCK_ROWS)} highlight={highlight} onUnfold={onUnfold} isFirst={from === 0} />);
  }
  return (
    <div ref={box} class="diff-lines" tabIndex={0} role="group" aria-label={text.transcript.changes(path)}>
      <table>{blocks}</table>
    </div>
  );
}

/** Rendered while it is near the visible part of the box; otherwise an empty body of the same height. */
function DiffBlock({ box, rows, highlight, onUnfold, isFirst }: { box: { current: HTMLElement | null }; isFirst: boolean } & Omit<RowsProps, 'path'>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const height = useRef(rows.length * ROW_PX);
  const [isNear, setNear] = useState(isFirst);
  useEffect(() => {
    const target = body.current;
    if (!target || !box.current) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries.at(-1);
        if (!entry) return;
        if (!entry.isIntersecting && target.rows.length > 1) height.current = target.getBoundingClientRect().height;
        setNear(entry.isIntersecting);
      },
      { root: box.current, rootMargin: `${NEAR_PX}px 0px` },
    );
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  if (!isNear) {
    return (
      <tbody ref={body}>
        <tr>
          <td style={{ height: `${height.current}px` }} />
        </tr>
      </tbody>
    );
  }
  return <tbody ref={body}>{rows.map((row) => ('line' in row ? <LineRow key={`${row.line.oldNumber}:${row.line.newNumber}`} line={row.line} highlight={highlight} /> : <FoldRow key={`fold:${row.fold}`} lines={row.lines} onOpen={() => onUnfold(row.fold)} />))}</tbody>;
}

function FoldRow({ lines, onOpen }: { lines: readonly DiffLine[]; onOpen: () => void }) {
  return (
    <tr class="folded">
      <td colSpan={4}>
        <button type="button" class="quiet-button" onClick={onOpen}>
          {text.transcript.unchanged(lines.length)}
        </button>
      </td>
    </tr>
  );
}

function LineRow({ line, highlight }: { line: DiffLine; highlight: DiffHighlight | undefined }) {
  const { kind, oldNumber, newNumber, text: content } = line;
  const tokens = highlight?.line(line);
  return (
    <tr class={kind}>
      <td class="line-number">{oldNumber}</td>
      <td class="line-number">{newNumber}</td>
      <td class="diff-mark">
        <span aria-hidden="true">{LINE_MARKS[kind]}</span>
        {kind !== 'kept' && <span class="visually-hidden">{kind === 'added' ? text.transcript.added : text.transcript.removed}</span>}
      </td>
      <td class="line-text">{tokens ? <TokenLine line={tokens} /> : showInvisible(content)}</td>
    </tr>
  );
}
