// What the end of a run leaves of its entries.
import type { Protocol } from '@switchboard/client';
import type { Entry, QuestionEntry } from '../timeline';

/** An entry after the end of its run: nothing of it stays open. */
export function over(entry: Entry): Entry {
  switch (entry.kind) {
    case 'answer':
    case 'thought':
      return entry.isComplete ? entry : { ...entry, isComplete: true };
    case 'question':
      return entry.resolved ? entry : { ...entry, resolved: unanswered(entry) };
    default:
      return entry;
  }
}

/** A question after somebody's word about its end. The first one counts. */
export function resolve(entry: QuestionEntry, resolved: Protocol.Resolved, offset: number, resolvedAt: string | undefined): QuestionEntry {
  if (entry.resolved && entry.resolved.by !== NOBODY) return entry;
  return { ...entry, resolved, through: offset, ...(resolvedAt === undefined ? {} : { resolvedAt }) };
}

/** Who ends a question of a run that is over without a word about it. */
const NOBODY = '';

function unanswered({ question }: QuestionEntry): Protocol.Resolved {
  return { questionId: question.questionId, taskId: question.taskId, by: NOBODY, outcome: 'cancelled' };
}

/** A tool after more was told of it: what it was given and what came out need not be repeated. */
export function withTool(known: Protocol.ToolState, seen: Protocol.ToolState): Protocol.ToolState {
  const input = seen.input ?? known.input;
  const output = seen.output ?? known.output;
  return { ...seen, ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) };
}
