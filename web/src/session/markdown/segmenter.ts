// A text in markdown, in pieces that can be looked at one by one: so that of a text that grows only the last
// piece is read again.
//
// Where a piece ends is decided by whole lines and by nothing that comes later. It therefore does not matter
// how the text arrived.

/** One or more blocks that belong together, or one block of code between fences. */
export type Piece =
  | { readonly kind: 'text'; readonly start: number; readonly source: string }
  | { readonly kind: 'code'; readonly start: number; readonly language: string; readonly code: string };

interface Fence {
  mark: string;
  indent: number;
  info: string;
}

/** A piece that may still grow. */
interface Open {
  readonly start: number;
  readonly kind: Piece['kind'];
  /** The fence that is open in it. */
  readonly fence?: Fence | undefined;
  readonly isDone: boolean;
  readonly hasList: boolean;
  readonly wasBlank: boolean;
}

const FENCE = /^( *)(`{3,}|~{3,})([^\n]*)$/;
const LIST = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const HEADING = /^#{1,6}(?:[ \t]|$)/;

export class Pieces {
  #text = '';
  /** Up to here all lines are whole and have been looked at. */
  #read = 0;
  #done: Piece[] = [];
  #open: Open | undefined;

  /** The pieces of a text; those that were there before are the same objects. */
  of(text: string): readonly Piece[] {
    if (!text.startsWith(this.#text)) this.#forget();
    this.#text = text;
    for (let end = text.indexOf('\n', this.#read); end >= 0; end = text.indexOf('\n', this.#read)) {
      this.#follow(text.slice(this.#read, end));
      this.#read = end + 1;
    }
    return this.#withRest();
  }

  #forget(): void {
    this.#read = 0;
    this.#done = [];
    this.#open = undefined;
  }

  #follow(line: string): void {
    const after = follow(this.#open, line, this.#read);
    if (this.#open && after.start !== this.#open.start) this.#done.push(this.#piece(this.#open, after.start));
    this.#open = after;
  }

  /** With the line that has no end yet. */
  #withRest(): Piece[] {
    const { length } = this.#text;
    const open = this.#read < length ? follow(this.#open, this.#text.slice(this.#read), this.#read) : this.#open;
    if (!open) return this.#done;
    if (this.#open && open.start !== this.#open.start) {
      return [...this.#done, this.#piece(this.#open, open.start), this.#piece(open, length)];
    }
    return [...this.#done, this.#piece(open, length)];
  }

  #piece({ start, kind, fence, isDone }: Open, end: number): Piece {
    const source = this.#text.slice(start, end);
    if (kind === 'text' || !fence) return { kind: 'text', start, source };
    return { kind: 'code', start, language: fence.info.split(/\s/)[0] ?? '', code: inner(source, fence.indent, isDone) };
  }
}

/** What is between the fences. */
function inner(source: string, indent: number, isDone: boolean): string {
  const from = source.indexOf('\n') + 1;
  if (from === 0) return '';
  const whole = source.replace(/\n+$/, (end) => (isDone ? '' : end));
  const to = isDone ? Math.max(from, whole.lastIndexOf('\n')) : whole.length;
  const code = whole.slice(from, to).replace(/\r(?=\n|$)/g, '');
  return indent === 0 ? code : code.replace(new RegExp(`^ {1,${indent}}`, 'gm'), '');
}

/** The open piece after a line: the same one, or the one that the line begins. */
function follow(open: Open | undefined, line: string, at: number): Open {
  if (open?.fence && !open.isDone) {
    if (!closes(line, open.fence)) return open;
    return open.kind === 'code' ? { ...open, isDone: true } : { ...open, fence: undefined, wasBlank: false };
  }
  const isBlank = line.trim() === '';
  const fence = isBlank ? undefined : fenceOf(line);
  if (!open || open.isDone || (!isBlank && begins(open, line, fence))) return begin(line, at, fence);
  return { ...open, fence: open.hasList ? fence : undefined, wasBlank: isBlank, hasList: open.hasList || LIST.test(line) };
}

function begin(line: string, start: number, fence: Fence | undefined): Open {
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

/** Does this line have nothing to do with the piece before it? What is indented may belong to a list. */
function begins({ hasList, wasBlank }: Open, line: string, fence: Fence | undefined): boolean {
  if (fence && (fence.indent === 0 || (!hasList && fence.indent <= 3))) return true;
  if (HEADING.test(line)) return true;
  return wasBlank && !/^\s/.test(line) && !(hasList && LIST.test(line));
}

function fenceOf(line: string): Fence | undefined {
  const [, indent = '', mark = '', rest = ''] = FENCE.exec(line) ?? [];
  if (!mark || (mark.startsWith('`') && rest.includes('`'))) return undefined;
  return { mark, indent: indent.length, info: rest.trim() };
}

function closes(line: string, { mark }: Fence): boolean {
  const bare = line.trim();
  return bare.length >= mark.length && bare === (mark[0] ?? '').repeat(bare.length);
}
