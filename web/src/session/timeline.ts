// Timeline: the conversation as a list of entries, folded from journal events. Pure.
//
// A session's state has only the newest messages and the current run. The timeline also has thoughts, tools,
// questions and the end of each run, in order. It is folded from the journal page by page, newest page first.
import type { Protocol } from '@switchboard/client';
import { unknownBoundary } from './timeline/boundary';
import type { Boundary } from './timeline/boundary';

export { foldAll } from './timeline/fold';
export { join } from './timeline/join';
export { timelineOfState } from './timeline/from-state';

/** `key` never changes; `offset` is the first known event of the entry, `through` the last. */
interface EntryBase {
  readonly key: string;
  readonly offset: number;
  readonly through: number;
  readonly at: string;
  readonly taskId?: string;
}

/** A prompt. */
export interface PromptEntry extends EntryBase {
  readonly kind: 'prompt';
  readonly text: string;
  readonly by?: string;
  readonly mode?: 'plan' | 'act';
  readonly files: readonly Protocol.AskedFile[];
}

/** An answer, as markdown. `system`: a message from neither the agent nor a user. */
export interface AnswerEntry extends EntryBase {
  readonly kind: 'answer';
  readonly role: 'assistant' | 'system';
  readonly text: string;
  readonly isComplete: boolean;
  /** The text is shown as it is, not as markdown. */
  readonly isPlain?: boolean;
  /** The documents that the agent names as its sources. */
  readonly sources?: readonly string[];
}

/** Reasoning that the agent made visible. */
export interface ThoughtEntry extends EntryBase {
  readonly kind: 'thought';
  readonly text: string;
  /** When its last part arrived. */
  readonly until: string;
  readonly isComplete: boolean;
}

/** One tool call. */
export interface ToolEntry extends EntryBase {
  readonly kind: 'tool';
  readonly tool: Protocol.ToolState;
}

/** A question and its resolution. */
export interface QuestionEntry extends EntryBase {
  readonly kind: 'question';
  readonly question: Protocol.Question;
  readonly resolved?: Protocol.Resolved;
  readonly resolvedAt?: string;
}

/** A notice from the agent, or a suggestion by a member who is not in control. */
export interface NoteEntry extends EntryBase {
  readonly kind: 'note';
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
  readonly by?: string;
}

/** The plan of a run, as it was last reported. */
export interface PlanEntry extends EntryBase {
  readonly kind: 'plan';
  readonly steps: readonly Protocol.Step[];
}

/** The end of a run that was cancelled or failed. */
export interface EndEntry extends EntryBase {
  readonly kind: 'end';
  readonly status: 'cancelled' | 'error';
  readonly error?: Protocol.TaskError;
}

export type Entry = PromptEntry | AnswerEntry | ThoughtEntry | ToolEntry | QuestionEntry | NoteEntry | PlanEntry | EndEntry;

/** Entries from one offset on. Immutable; unchanged entries stay the same objects. */
export interface Timeline {
  readonly entries: readonly Entry[];
  /** The first event folded; everything before it is still to be loaded. */
  readonly from: number;
  /** The last event folded. */
  readonly offset: number;
  /** What these events say about entries that began before them. */
  readonly boundary: Boundary;
}

/** A timeline without events that continues after `offset`. */
export function emptyTimeline(offset = 0): Timeline {
  return { entries: [], from: offset + 1, offset, boundary: unknownBoundary() };
}

export function isEmptyTimeline(timeline: Timeline): boolean {
  return timeline.from > timeline.offset;
}

/**
 * The offset to branch at after an entry. After the last entry of a run it includes the run's end: without it
 * the run would count as cancelled.
 */
export function branchPoint(timeline: Timeline, entry: Entry): number {
  const { taskId, key } = entry;
  const last = [...timeline.entries].reverse().find((other) => other.taskId === taskId);
  const end = taskId === undefined || last?.key !== key ? undefined : timeline.boundary.ended.get(taskId);
  return Math.max(entry.through, end ?? 0);
}
