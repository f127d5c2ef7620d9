// A conversation as it is read from top to bottom. Pure: events in, entries out.
//
// The state that a session tells has the newest messages and what goes on now. What people scroll
// through has more: thoughts, tools, questions and how each run ended, in the order in which they came.
// It is folded from the journal, page by page, the newest page first.
import type { Protocol } from '@switchboard/client';
import { openBorder } from './timeline/border';
import type { Border } from './timeline/border';

export { foldAll } from './timeline/fold';
export { join } from './timeline/join';
export { ofState } from './timeline/state';

/** What all entries have. `key` is the same for ever; `offset` is the first event of it that is known, `through` the last. */
interface Any {
  readonly key: string;
  readonly offset: number;
  readonly through: number;
  readonly at: string;
  readonly taskId?: string;
}

/** What somebody asked. */
export interface PromptEntry extends Any {
  readonly kind: 'prompt';
  readonly text: string;
  readonly by?: string;
  readonly mode?: 'plan' | 'act';
  readonly files: readonly Protocol.AskedFile[];
}

/** What the agent said, as markdown. `system`: what was put into the conversation by somebody else. */
export interface AnswerEntry extends Any {
  readonly kind: 'answer';
  readonly role: 'assistant' | 'system';
  readonly text: string;
  readonly isComplete: boolean;
}

/** What the agent thought aloud. */
export interface ThoughtEntry extends Any {
  readonly kind: 'thought';
  readonly text: string;
  /** When the last of it came. */
  readonly until: string;
  readonly isComplete: boolean;
}

/** One use of a tool. */
export interface ToolEntry extends Any {
  readonly kind: 'tool';
  readonly tool: Protocol.ToolState;
}

/** A question, and how it ended. */
export interface QuestionEntry extends Any {
  readonly kind: 'question';
  readonly question: Protocol.Question;
  readonly resolved?: Protocol.Resolved;
  /** When that was told. */
  readonly resolvedAt?: string;
}

/** Something to know about the agent, or a suggestion of somebody who only looks on. */
export interface NoteEntry extends Any {
  readonly kind: 'note';
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
  readonly by?: string;
}

/** The end of a run that did not simply complete. */
export interface EndEntry extends Any {
  readonly kind: 'end';
  readonly status: 'cancelled' | 'error';
  readonly error?: Protocol.TaskError;
}

export type Entry = PromptEntry | AnswerEntry | ThoughtEntry | ToolEntry | QuestionEntry | NoteEntry | EndEntry;

/** The entries from some offset on. Never changed, but replaced; what stayed the same is the same object. */
export interface Timeline {
  readonly entries: readonly Entry[];
  /** The first event that it was folded from; everything before is still to be loaded. */
  readonly from: number;
  /** The last event. */
  readonly offset: number;
  /** What was said here about entries that began before it. */
  readonly border: Border;
}

/** A conversation of which nothing is known from `offset` on. */
export function emptyTimeline(offset = 0): Timeline {
  return { entries: [], from: offset + 1, offset, border: openBorder() };
}

/** Has nothing been folded yet? */
export function isUnread(timeline: Timeline): boolean {
  return timeline.from > timeline.offset;
}

/**
 * Up to which event to go on from an entry in another session. After the last entry of a run that is its
 * end: cut before it, the run would count as cancelled.
 */
export function branchPoint(timeline: Timeline, entry: Entry): number {
  const { taskId, key } = entry;
  const last = [...timeline.entries].reverse().find((other) => other.taskId === taskId);
  const end = taskId === undefined || last?.key !== key ? undefined : timeline.border.ended.get(taskId);
  return Math.max(entry.through, end ?? 0);
}
