// What changed between two texts, line by line. Pure.

/** A line: kept, removed or added, with its number in the old and in the new text. */
export interface Line {
  readonly is: 'kept' | 'removed' | 'added';
  readonly text: string;
  readonly old?: number;
  readonly now?: number;
}

/** Lines that are shown, or so many that did not change and are folded. */
export type Part = { readonly lines: readonly Line[]; readonly isFolded: boolean };

/** Beyond so many differences everything counts as changed: looking further would take too long. */
const MOST_EDITS = 800;

/** All lines of both texts. */
export function compare(before: string, after: string): Line[] {
  const [old, now] = [split(before), split(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const middle = changes(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const kept = (text: string): Step => ({ is: 'kept', text });
  return numbered([...old.slice(0, head).map(kept), ...middle, ...old.slice(old.length - tail).map(kept)]);
}

/** The changes with a few lines around them; the rest is folded. */
export function fold(lines: readonly Line[], around = 3): Part[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach(({ is }, place) => {
    if (is !== 'kept') isNear.fill(1, Math.max(0, place - around), place + around + 1);
  });
  const parts: { lines: Line[]; isFolded: boolean }[] = [];
  lines.forEach((line, place) => {
    const isFolded = isNear[place] === 0;
    const last = parts.at(-1);
    if (last?.isFolded === isFolded) last.lines.push(line);
    else parts.push({ lines: [line], isFolded });
  });
  // To say that one line is missing takes a line.
  return parts.map((part) => (part.isFolded && part.lines.length === 1 ? { ...part, isFolded: false } : part));
}

type Step = Pick<Line, 'is' | 'text'>;

function split(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function numbered(steps: readonly Step[]): Line[] {
  let [old, now] = [0, 0];
  return steps.map(({ is, text }) => ({
    is,
    text,
    ...(is === 'added' ? {} : { old: (old += 1) }),
    ...(is === 'removed' ? {} : { now: (now += 1) }),
  }));
}

/** The shortest way from one to the other, after Myers: how far each diagonal comes with each further edit. */
function changes(old: readonly string[], now: readonly string[]): Step[] {
  const all = (): Step[] => [...old.map((text): Step => ({ is: 'removed', text })), ...now.map((text): Step => ({ is: 'added', text }))];
  if (old.length === 0 || now.length === 0) return all();
  const most = Math.min(MOST_EDITS, old.length + now.length);
  const reach = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(reach.slice(most - edits, most + edits + 3));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const place = diagonal + most + 1;
      const isDown = diagonal === -edits || (diagonal !== edits && at(reach, place - 1) < at(reach, place + 1));
      let x = isDown ? at(reach, place + 1) : at(reach, place - 1) + 1;
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x += 1;
      reach[place] = x;
      if (x >= old.length && x - diagonal >= now.length) return back(old, now, trace, edits);
    }
  }
  return all();
}

/** The way, read from its end. */
function back(old: readonly string[], now: readonly string[], trace: readonly Int32Array[], edits: number): Step[] {
  const steps: Step[] = [];
  let [x, y] = [old.length, now.length];
  for (let edit = edits; edit >= 0; edit -= 1) {
    const reach = trace[edit] as Int32Array;
    const diagonal = x - y;
    const place = diagonal + edit + 1;
    const isDown = diagonal === -edit || (diagonal !== edit && at(reach, place - 1) < at(reach, place + 1));
    const fromX = edit === 0 ? 0 : isDown ? at(reach, place + 1) : at(reach, place - 1);
    const fromY = edit === 0 ? 0 : fromX - (isDown ? diagonal + 1 : diagonal - 1);
    // Where the snake begins: right after the edit.
    const [startX, startY] = edit === 0 ? [0, 0] : isDown ? [fromX, fromY + 1] : [fromX + 1, fromY];
    while (x > startX && y > startY) {
      steps.push({ is: 'kept', text: old[x - 1] as string });
      x -= 1;
      y -= 1;
    }
    if (edit === 0) break;
    if (isDown) steps.push({ is: 'added', text: now[(y -= 1)] as string });
    else steps.push({ is: 'removed', text: old[(x -= 1)] as string });
  }
  return steps.reverse();
}

function at(numbers: Int32Array, place: number): number {
  return numbers[place] as number;
}
