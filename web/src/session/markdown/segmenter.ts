// Segmenter: splits growing markdown into segments that render independently, so that only the last one is
// parsed again.
//
// A segment ends by the lines seen so far, never by later ones, so the result does not depend on how the text
// was chunked.

/** One or more blocks that belong together, or one fenced code block. */
export type Segment =
  | { readonly kind: 'text'; readonly start: number; readonly source: string }
  | { readonly kind: 'code'; readonly start: number; readonly language: string; readonly code: string };

interface Fence {
  mark: string;
  indent: number;
  info: string;
}

/** A segment that may still grow. */
interface OpenSegment {
  readonly start: number;
  readonly kind: Segment['kind'];
  /** The fence that is open within it. */
  readonly fence?: Fence | undefined;
  readonly isDone: boolean;
  readonly hasList: boolean;
  readonly wasBlank: boolean;
}

const FENCE = /^( *)(`{3,}|~{3,})([^\n]*)$/;
const LIST = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const HEADING = /^#{1,6}(?:[ \t]|$)/;

export class Segmenter {
  #text = '';
  /** All lines up to here are complete and processed. */
  #consumed = 0;
  #finished: Segment[] = [];
  #open: OpenSegment | undefined;

  /** The segments of a text. Unchanged ones are the same objects as before. */
  segments(text: string): readonly Segment[] {
    if (!text.startsWith(this.#text)) this.#reset();
    this.#text = text;
    for (let end = text.indexOf('\n', this.#consumed); end >= 0; end = text.indexOf('\n', this.#consumed)) {
      this.#consumeLine(text.slice(this.#consumed, end));
      this.#consumed = end + 1;
    }
    return this.#withPartialLine();
  }

  #reset(): void {
    this.#consumed = 0;
    this.#finished = [];
    this.#open = undefined;
  }

  #consumeLine(line: string): void {
    const after = afterLine(this.#open, line, this.#consumed);
    if (this.#open && after.start !== this.#open.start) this.#finished.push(this.#toSegment(this.#open, after.start));
    this.#open = after;
  }

  /** Includes the last line, which is not complete yet. */
  #withPartialLine(): Segment[] {
    const { length } = this.#text;
    const open = this.#consumed < length ? afterLine(this.#open, this.#text.slice(this.#consumed), this.#consumed) : this.#open;
    if (!open) return this.#finished;
    if (this.#open && open.start !== this.#open.start) {
      return [...this.#finished, this.#toSegment(this.#open, open.start), this.#toSegment(open, length)];
    }
    return [...this.#finished, this.#toSegment(open, length)];
  }

  #toSegment({ start, kind, fence, isDone }: OpenSegment, end: number): Segment {
    const source = this.#text.slice(start, end);
    if (kind === 'text' || !fence) return { kind: 'text', start, source };
    return { kind: 'code', start, language: fence.info.split(/\s/)[0] ?? '', code: codeInside(source, fence.indent, isDone) };
  }
}

/** The code between the fences. */
function codeInside(source: string, indent: number, isDone: boolean): string {
  const from = source.indexOf('\n') + 1;
  if (from === 0) return '';
  const whole = source.replace(/\n+$/, (end) => (isDone ? '' : end));
  const to = isDone ? Math.max(from, whole.lastIndexOf('\n')) : whole.length;
  const code = whole.slice(from, to).replace(/\r(?=\n|$)/g, '');
  return indent === 0 ? code : code.replace(new RegExp(`^ {1,${indent}}`, 'gm'), '');
}

/** The open segment after a line: the same one, or a new one that the line begins. */
function afterLine(open: OpenSegment | undefined, line: string, offset: number): OpenSegment {
  if (open?.fence && !open.isDone) {
    if (!closesFence(line, open.fence)) return open;
    return open.kind === 'code' ? { ...open, isDone: true } : { ...open, fence: undefined, wasBlank: false };
  }
  const isBlank = line.trim() === '';
  const fence = isBlank ? undefined : parseFence(line);
  if (!open || open.isDone || (!isBlank && startsSegment(open, line, fence))) return openSegment(line, offset, fence);
  return { ...open, fence: open.hasList ? fence : undefined, wasBlank: isBlank, hasList: open.hasList || LIST.test(line) };
}

function openSegment(line: string, start: number, fence: Fence | undefined): OpenSegment {
  const isCode = fence !== undefined && fence.indent <= 3;
  return {
    start,
    kind: isCode ? 'code' : 'text',
    fence: isCode ? fence : undefined,
    isDone: false,
    hasList: !isCode && LIST.test(line),
    wasBlank: line.trim() === '',
  };
}

/** Whether a line begins a new segment. Indented lines may continue a list. */
function startsSegment({ hasList, wasBlank }: OpenSegment, line: string, fence: Fence | undefined): boolean {
  if (fence && (fence.indent === 0 || (!hasList && fence.indent <= 3))) return true;
  if (HEADING.test(line)) return true;
  return wasBlank && !/^\s/.test(line) && !(hasList && LIST.test(line));
}

function parseFence(line: string): Fence | undefined {
  const [, indent = '', mark = '', rest = ''] = FENCE.exec(line) ?? [];
  if (!mark || (mark.startsWith('`') && rest.includes('`'))) return undefined;
  return { mark, indent: indent.length, info: rest.trim() };
}

function closesFence(line: string, { mark }: Fence): boolean {
  const bare = line.trim();
  return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
}
