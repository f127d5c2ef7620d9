// Line diff: compares two texts line by line. Pure.

/** A line with its numbers in the old and in the new text. */
export interface DiffLine {
  readonly kind: 'kept' | 'removed' | 'added';
  readonly text: string;
  readonly oldNumber?: number;
  readonly newNumber?: number;
}

/** Lines to show, or unchanged lines that are folded. */
export type DiffPart = { readonly lines: readonly DiffLine[]; readonly isFolded: boolean };

/** Beyond this many edits the whole text counts as changed: searching further would take too long. */
const MAX_EDITS = 800;

/** Edits between two steps. */
const EDITS_PER_STEP = 8;

/** All lines of both texts. */
export function diffLines(before: string, after: string): DiffLine[] {
  const steps = diffInSteps(before, after);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The same in small steps, so that the page can do something else in between. */
export function* diffInSteps(before: string, after: string): Generator<void, DiffLine[]> {
  const [oldLines, newLines] = [split(before), split(after)];
  let head = 0;
  while (head < oldLines.length && head < newLines.length && oldLines[head] === newLines[head]) head += 1;
  let tail = 0;
  while (tail < oldLines.length - head && tail < newLines.length - head && oldLines[oldLines.length - 1 - tail] === newLines[newLines.length - 1 - tail]) tail += 1;
  yield;
  const middle = yield* shortestEdit(oldLines.slice(head, oldLines.length - tail), newLines.slice(head, newLines.length - tail));
  const keptLine = (text: string): Step => ({ kind: 'kept', text });
  return numbered([...oldLines.slice(0, head).map(keptLine), ...middle, ...oldLines.slice(oldLines.length - tail).map(keptLine)]);
}

/** The changes with some context; the rest is folded. */
export function foldUnchanged(lines: readonly DiffLine[], context = 3): DiffPart[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach(({ kind }, index) => {
    if (kind !== 'kept') isNear.fill(1, Math.max(0, index - context), index + context + 1);
  });
  const parts: { lines: DiffLine[]; isFolded: boolean }[] = [];
  lines.forEach((line, index) => {
    const isFolded = isNear[index] === 0;
    const last = parts.at(-1);
    if (last?.isFolded === isFolded) last.lines.push(line);
    else parts.push({ lines: [line], isFolded });
  });
  // A fold of a single line would save no space.
  return parts.map((part) => (part.isFolded && part.lines.length === 1 ? { ...part, isFolded: false } : part));
}

type Step = Pick<DiffLine, 'kind' | 'text'>;

function split(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function numbered(steps: readonly Step[]): DiffLine[] {
  let [oldNumber, newNumber] = [0, 0];
  return steps.map(({ kind, text }) => ({
    kind,
    text,
    ...(kind === 'added' ? {} : { oldNumber: (oldNumber += 1) }),
    ...(kind === 'removed' ? {} : { newNumber: (newNumber += 1) }),
  }));
}

/** Myers' algorithm: how far each diagonal reaches with each further edit. Falls back to replacing everything. */
function* shortestEdit(oldLines: readonly string[], newLines: readonly string[]): Generator<void, Step[]> {
  const all = (): Step[] => [...oldLines.map((text): Step => ({ kind: 'removed', text })), ...newLines.map((text): Step => ({ kind: 'added', text }))];
  if (oldLines.length === 0 || newLines.length === 0) return all();
  const maxEdits = Math.min(MAX_EDITS, oldLines.length + newLines.length);
  const reach = new Int32Array(2 * maxEdits + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= maxEdits; edits += 1) {
    if (edits % EDITS_PER_STEP === EDITS_PER_STEP - 1) yield;
    trace.push(reach.slice(maxEdits - edits, maxEdits + edits + 3));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const index = diagonal + maxEdits + 1;
      const isDown = diagonal === -edits || (diagonal !== edits && numberAt(reach, index - 1) < numberAt(reach, index + 1));
      let x = isDown ? numberAt(reach, index + 1) : numberAt(reach, index - 1) + 1;
      while (x < oldLines.length && x - diagonal < newLines.length && oldLines[x] === newLines[x - diagonal]) x += 1;
      reach[index] = x;
      if (x >= oldLines.length && x - diagonal >= newLines.length) return traceBack(oldLines, newLines, trace, edits);
    }
  }
  return all();
}

/** Reads the edits backwards from the end of the trace. */
function traceBack(oldLines: readonly string[], newLines: readonly string[], trace: readonly Int32Array[], edits: number): Step[] {
  const steps: Step[] = [];
  let [x, y] = [oldLines.length, newLines.length];
  for (let edit = edits; edit >= 0; edit -= 1) {
    const reach = trace[edit] as Int32Array;
    const diagonal = x - y;
    const index = diagonal + edit + 1;
    const isDown = diagonal === -edit || (diagonal !== edit && numberAt(reach, index - 1) < numberAt(reach, index + 1));
    const fromX = edit === 0 ? 0 : isDown ? numberAt(reach, index + 1) : numberAt(reach, index - 1);
    const fromY = edit === 0 ? 0 : fromX - (isDown ? diagonal + 1 : diagonal - 1);
    // Where the diagonal run begins: right after the edit.
    const [startX, startY] = edit === 0 ? [0, 0] : isDown ? [fromX, fromY + 1] : [fromX + 1, fromY];
    while (x > startX && y > startY) {
      steps.push({ kind: 'kept', text: oldLines[x - 1] as string });
      x -= 1;
      y -= 1;
    }
    if (edit === 0) break;
    if (isDown) steps.push({ kind: 'added', text: newLines[(y -= 1)] as string });
    else steps.push({ kind: 'removed', text: oldLines[(x -= 1)] as string });
  }
  return steps.reverse();
}

function numberAt(numbers: Int32Array, index: number): number {
  return numbers[index] as number;
}
