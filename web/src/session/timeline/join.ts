// Join: combines two adjacent pages of the timeline.
import { isEmptyTimeline } from '../timeline';
import type { AnswerEntry, EndEntry, Entry, Timeline } from '../timeline';
import type { Boundary } from './boundary';
import { closeEntry, mergeTool, resolveQuestion } from './entry-updates';

/** The older page before the newer one. Entries that span both are merged. */
export function join(older: Timeline, newer: Timeline): Timeline {
  if (isEmptyTimeline(older)) return newer;
  if (isEmptyTimeline(newer)) return { ...older, offset: Math.max(older.offset, newer.offset) };
  const ended = runsEndedBy(older.boundary, newer.boundary);
  const before = older.entries.slice();
  const indexByKey = new Map(before.map((entry, index) => [entry.key, index]));
  const after: Entry[] = [];
  for (const entry of newer.entries) {
    const isTooLate = entry.taskId !== undefined && entry.kind !== 'prompt' && older.boundary.ended.has(entry.taskId);
    if (isTooLate) continue;
    const index = indexByKey.get(entry.key);
    const existing = index === undefined ? undefined : before[index];
    if (index === undefined || !existing) after.push(afterOlder(entry, older.boundary));
    else before[index] = mergeEntries(completedBy(existing, newer.boundary), entry, newer.boundary);
  }
  const entries = before.map((entry) => afterNewer(entry, newer.boundary, ended));
  const { matched, unmatchedEnds } = matchEnds(older.boundary, newer.boundary);
  return {
    entries: [...entries, ...byOffset(after, matched)],
    from: older.from,
    offset: newer.offset,
    boundary: { ...joinBoundaries(older, newer, indexByKey), ended: new Map([...ended, ...older.boundary.ended]), unmatchedEnds },
  };
}

/** Runs that the newer page ends, including one that the next run replaced. */
function runsEndedBy(older: Boundary, newer: Boundary): ReadonlyMap<string, number> {
  const { current } = older;
  const { firstRun } = newer;
  if (!firstRun || typeof current !== 'string' || current === firstRun.taskId || newer.ended.has(current)) return newer.ended;
  return new Map([...newer.ended, [current, firstRun.offset]]);
}

/** Ends whose run is known to have started, and those that remain unmatched. */
function matchEnds(older: Boundary, newer: Boundary): { matched: EndEntry[]; unmatchedEnds: readonly EndEntry[] } {
  if (older.current === undefined) return { matched: [], unmatchedEnds: [...older.unmatchedEnds, ...newer.unmatchedEnds] };
  return { matched: newer.unmatchedEnds.filter(({ taskId }) => taskId === older.current), unmatchedEnds: older.unmatchedEnds };
}

function byOffset(entries: Entry[], more: EndEntry[]): Entry[] {
  return more.length === 0 ? entries : [...entries, ...more].sort((one, other) => one.offset - other.offset);
}

/** An entry that only the newer page has. */
function afterOlder(entry: Entry, older: Boundary): Entry {
  return entry.kind === 'thought' && older.settled.has(entry.key) ? closeEntry(entry) : entry;
}

/** An entry of the older page after what the newer one says about it. */
function afterNewer(entry: Entry, newer: Boundary, ended: ReadonlyMap<string, number>): Entry {
  const after = completedBy(entry, newer);
  return entry.taskId !== undefined && ended.has(entry.taskId) ? closeEntry(after) : after;
}

/** An entry that the newer page completes. Applied before any other change of the newer page. */
function completedBy(entry: Entry, newer: Boundary): Entry {
  const answered = entry.kind === 'question' ? newer.resolved.get(entry.question.questionId) : undefined;
  if (entry.kind === 'question' && answered) return resolveQuestion(entry, answered.resolved, answered.offset, answered.at);
  const offset = newer.settled.get(entry.key);
  if (offset === undefined) return entry;
  return entry.kind === 'answer' && !entry.isComplete ? { ...entry, isComplete: true, through: offset } : closeEntry(entry);
}

/** An entry of which each page has a part. */
function mergeEntries(older: Entry, newer: Entry, boundary: Boundary): Entry {
  if (older.kind === 'answer' && newer.kind === 'answer') return mergeAnswers(older, newer, boundary);
  if (older.kind === 'thought' && newer.kind === 'thought') {
    const { until, through } = newer;
    return { ...older, text: older.text + newer.text, isComplete: older.isComplete || newer.isComplete, until, through };
  }
  if (older.kind === 'tool' && newer.kind === 'tool') return { ...older, tool: mergeTool(older.tool, newer.tool), through: newer.through };
  if (older.kind === 'plan' && newer.kind === 'plan') return { ...older, steps: newer.steps, through: newer.through };
  if (older.kind === 'question' && newer.kind === 'question' && newer.resolved?.by) return resolveQuestion(older, newer.resolved, newer.through, newer.resolvedAt);
  return older;
}

function mergeAnswers(older: AnswerEntry, newer: AnswerEntry, { rewritten }: Boundary): AnswerEntry {
  const rewrite = rewritten.get(newer.key);
  if (older.isComplete && rewrite !== 'replaced') return older;
  const { isComplete, through } = newer;
  if (rewrite) return { ...older, text: newer.text, isComplete, through, ...(rewrite === 'replaced' ? { role: newer.role } : {}) };
  return { ...older, text: older.text + newer.text, isComplete, through };
}

function joinBoundaries(older: Timeline, newer: Timeline, indexByKey: ReadonlyMap<string, number>): Omit<Boundary, 'ended' | 'unmatchedEnds'> {
  const [before, after] = [older.boundary, newer.boundary];
  const entry = (key: string): Entry | undefined => older.entries[indexByKey.get(key) ?? -1];
  const isDone = (key: string) => {
    const entryOfKey = entry(key);
    return entryOfKey?.kind === 'answer' && (entryOfKey.isComplete || after.settled.has(key));
  };
  const renewed = [...after.rewritten].filter(([key, rewrite]) => rewrite === 'replaced' || !isDone(key));
  const unknown = [...after.resolved].filter(([id]) => !entry(`question:${id}`));
  const open = [...after.settled].filter(([key]) => !entry(key));
  return {
    current: after.current !== undefined ? after.current : isStillRunning(before, after) ? before.current : null,
    firstRun: before.firstRun ?? (before.current === undefined ? after.firstRun : undefined),
    resolved: new Map([...unknown, ...before.resolved]),
    settled: new Map([...open, ...before.settled]),
    rewritten: new Map([...before.rewritten, ...renewed]),
  };
}

function isStillRunning({ current }: Boundary, after: Boundary): boolean {
  return typeof current !== 'string' ? current === undefined : !after.ended.has(current);
}
