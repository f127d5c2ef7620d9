// Entry updates: close entries with their run, resolve questions, merge tool updates.
import type { Protocol } from '@switchboard/client';
import type { Entry, QuestionEntry } from '../timeline';

/** The entry after the end of its run: nothing stays open. */
export function closeEntry(entry: Entry): Entry {
  switch (entry.kind) {
    case 'answer':
    case 'thought':
      return entry.isComplete ? entry : { ...entry, isComplete: true };
    case 'question':
      return entry.resolved ? entry : { ...entry, resolved: cancelledResolution(entry) };
    default:
      return entry;
  }
}

/** The question with its resolution. The first real one wins. */
export function resolveQuestion(entry: QuestionEntry, resolved: Protocol.Resolved, offset: number, resolvedAt: string | undefined): QuestionEntry {
  if (entry.resolved && entry.resolved.by !== NO_RESOLVER) return entry;
  return { ...entry, resolved, through: offset, ...(resolvedAt === undefined ? {} : { resolvedAt }) };
}

/** Marks a question that ended with its run, without a resolution of its own. */
const NO_RESOLVER = '';

function cancelledResolution({ question }: QuestionEntry): Protocol.Resolved {
  return { questionId: question.questionId, ...(question.taskId === undefined ? {} : { taskId: question.taskId }), by: NO_RESOLVER, outcome: 'cancelled' };
}

/** The tool after an update, which may leave out `input` and `output`. */
export function mergeTool(existing: Protocol.ToolState, update: Protocol.ToolState): Protocol.ToolState {
  const input = update.input ?? existing.input;
  const output = update.output ?? existing.output;
  return { ...update, ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) };
}
