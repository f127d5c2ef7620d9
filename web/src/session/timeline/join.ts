// Two parts of a conversation that follow each other, put together.
import { isUnread } from '../timeline';
import type { AnswerEntry, EndEntry, Entry, Timeline } from '../timeline';
import type { Border } from './border';
import { over, resolve, withTool } from './over';

/** An older part before a newer one. What reaches over the border is put together. */
export function join(older: Timeline, newer: Timeline): Timeline {
  if (isUnread(older)) return newer;
  if (isUnread(newer)) return { ...older, offset: Math.max(older.offset, newer.offset) };
  const ended = endedIn(older.border, newer.border);
  const before = older.entries.slice();
  const places = new Map(before.map((entry, place) => [entry.key, place]));
  const after: Entry[] = [];
  for (const entry of newer.entries) {
    const isLate = entry.taskId !== undefined && entry.kind !== 'prompt' && older.border.ended.has(entry.taskId);
    if (isLate) continue;
    const place = places.get(entry.key);
    const known = place === undefined ? undefined : before[place];
    if (place === undefined || !known) after.push(settled(entry, older.border));
    else before[place] = merged(completed(known, newer.border), entry, newer.border);
  }
  const entries = before.map((entry) => settledLater(entry, newer.border, ended));
  const { found, looseEnds } = ends(older.border, newer.border);
  return {
    entries: [...entries, ...inOrder(after, found)],
    from: older.from,
    offset: newer.offset,
    border: { ...bothBorders(older, newer, places), ended: new Map([...ended, ...older.border.ended]), looseEnds },
  };
}

/** Runs that the newer part ends, among them one that another one simply followed. */
function endedIn(older: Border, newer: Border): ReadonlyMap<string, number> {
  const { current } = older;
  const { opening } = newer;
  if (!opening || typeof current !== 'string' || current === opening.taskId || newer.ended.has(current)) return newer.ended;
  return new Map([...newer.ended, [current, opening.offset]]);
}

/** Ends of runs that are known to have begun, and those of which it still is not. */
function ends(older: Border, newer: Border): { found: EndEntry[]; looseEnds: readonly EndEntry[] } {
  if (older.current === undefined) return { found: [], looseEnds: [...older.looseEnds, ...newer.looseEnds] };
  return { found: newer.looseEnds.filter(({ taskId }) => taskId === older.current), looseEnds: older.looseEnds };
}

function inOrder(entries: Entry[], more: EndEntry[]): Entry[] {
  return more.length === 0 ? entries : [...entries, ...more].sort((one, other) => one.offset - other.offset);
}

/** An entry of the newer part that is not in the older one. */
function settled(entry: Entry, older: Border): Entry {
  return entry.kind === 'thought' && older.settled.has(entry.key) ? over(entry) : entry;
}

/** An entry of the older part after what the newer one says about it. */
function settledLater(entry: Entry, newer: Border, ended: ReadonlyMap<string, number>): Entry {
  const after = completed(entry, newer);
  return entry.taskId !== undefined && ended.has(entry.taskId) ? over(after) : after;
}

/** An entry that the newer part completes, which comes before all else that the newer part says of it. */
function completed(entry: Entry, newer: Border): Entry {
  const answered = entry.kind === 'question' ? newer.resolved.get(entry.question.questionId) : undefined;
  if (entry.kind === 'question' && answered) return resolve(entry, answered.resolved, answered.offset, answered.at);
  const at = newer.settled.get(entry.key);
  if (at === undefined) return entry;
  return entry.kind === 'answer' && !entry.isComplete ? { ...entry, isComplete: true, through: at } : over(entry);
}

/** One entry of which each part has a piece. */
function merged(older: Entry, newer: Entry, border: Border): Entry {
  if (older.kind === 'answer' && newer.kind === 'answer') return answer(older, newer, border);
  if (older.kind === 'thought' && newer.kind === 'thought') {
    const { until, through } = newer;
    return { ...older, text: older.text + newer.text, isComplete: older.isComplete || newer.isComplete, until, through };
  }
  if (older.kind === 'tool' && newer.kind === 'tool') return { ...older, tool: withTool(older.tool, newer.tool), through: newer.through };
  if (older.kind === 'question' && newer.kind === 'question' && newer.resolved?.by) return resolve(older, newer.resolved, newer.through, newer.resolvedAt);
  return older;
}

function answer(older: AnswerEntry, newer: AnswerEntry, { renewed }: Border): AnswerEntry {
  const renewal = renewed.get(newer.key);
  if (older.isComplete && renewal !== 'replaced') return older;
  const { isComplete, through } = newer;
  if (renewal) return { ...older, text: newer.text, isComplete, through, ...(renewal === 'replaced' ? { role: newer.role } : {}) };
  return { ...older, text: older.text + newer.text, isComplete, through };
}

function bothBorders(older: Timeline, newer: Timeline, places: ReadonlyMap<string, number>): Omit<Border, 'ended' | 'looseEnds'> {
  const [before, after] = [older.border, newer.border];
  const entry = (key: string): Entry | undefined => older.entries[places.get(key) ?? -1];
  const isDone = (key: string) => {
    const known = entry(key);
    return known?.kind === 'answer' && (known.isComplete || after.settled.has(key));
  };
  const renewed = [...after.renewed].filter(([key, how]) => how === 'replaced' || !isDone(key));
  const unknown = [...after.resolved].filter(([id]) => !entry(`question:${id}`));
  const open = [...after.settled].filter(([key]) => !entry(key));
  return {
    current: after.current !== undefined ? after.current : stillRuns(before, after) ? before.current : null,
    opening: before.opening ?? (before.current === undefined ? after.opening : undefined),
    resolved: new Map([...unknown, ...before.resolved]),
    settled: new Map([...open, ...before.settled]),
    renewed: new Map([...before.renewed, ...renewed]),
  };
}

function stillRuns({ current }: Border, after: Border): boolean {
  return typeof current !== 'string' ? current === undefined : !after.ended.has(current);
}
