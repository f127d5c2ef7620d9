// File change: the two versions of a file, and their difference, computed once and in small steps.
import { useEffect, useState } from 'preact/hooks';
import { diffInSteps, diffLines } from './line-diff';
import type { DiffLine } from './line-diff';

/** `before` is absent if the file is new. */
export interface FileChange {
  readonly path: string;
  readonly before?: string;
  readonly after: string;
}

export interface Diff {
  readonly lines: readonly DiffLine[];
  readonly added: number;
  readonly removed: number;
}

/** Smaller changes are compared at once: it takes a millisecond. */
const MAX_SYNC_CHARS = 20_000;
const SLICE_MS = 8;
const diffs = new WeakMap<FileChange, Diff>();
const pending = new WeakMap<FileChange, Promise<void>>();

/** The differences of some changes; undefined until all of them are known. */
export function useDiffs(changes: readonly FileChange[]): readonly Diff[] | undefined {
  const [, redraw] = useState(0);
  const known = changes.map(knownDiff);
  const isComplete = known.every((diff) => diff !== undefined);
  useEffect(() => {
    if (isComplete) return undefined;
    let isMounted = true;
    void Promise.all(changes.map(computeDiff)).then(() => isMounted && redraw((count) => count + 1));
    return () => void (isMounted = false);
  }, [changes, isComplete]);
  return isComplete ? (known as Diff[]) : undefined;
}

function knownDiff(change: FileChange): Diff | undefined {
  const known = diffs.get(change);
  if (known || (change.before ?? '').length + change.after.length > MAX_SYNC_CHARS) return known;
  return remember(change, diffLines(change.before ?? '', change.after));
}

function remember(change: FileChange, lines: readonly DiffLine[]): Diff {
  const count = (wanted: DiffLine['kind']) => lines.reduce((sum, { kind }) => sum + (kind === wanted ? 1 : 0), 0);
  const diff = { lines, added: count('added'), removed: count('removed') };
  diffs.set(change, diff);
  return diff;
}

function computeDiff(change: FileChange): Promise<void> {
  const running = pending.get(change);
  if (diffs.has(change)) return Promise.resolve();
  if (running) return running;
  const started = computeInSlices(change);
  pending.set(change, started);
  return started;
}

async function computeInSlices(change: FileChange): Promise<void> {
  const steps = diffInSteps(change.before ?? '', change.after);
  for (;;) {
    const until = performance.now() + SLICE_MS;
    do {
      const step = steps.next();
      if (step.done) return void remember(change, step.value);
    } while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve));
  }
}
