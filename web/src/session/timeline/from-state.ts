// From state: a timeline made of a session's state.
import type { Protocol } from '@switchboard/client';
import type { Entry, Timeline } from '../timeline';
import { unknownBoundary } from './boundary';

/** Used when the journal cannot be read. */
export function timelineOfState(state: Protocol.FullState): Timeline {
  const task = state.currentTask;
  const isRunning = task?.status === 'running' || task?.status === 'starting';
  const times = { offset: state.offset, through: state.offset, at: task?.startTime ?? '', ...(task ? { taskId: task.id } : {}) };
  const entries: Entry[] = state.conversationHistory.map(entryOfMessage);
  for (const tool of state.tools) entries.push({ kind: 'tool', key: `tool:${task?.id}:${tool.toolCallId}`, ...times, tool });
  for (const question of state.questions) {
    const { taskId: _, ...sessionTimes } = times;
    const asked = question.taskId === undefined ? sessionTimes : { ...sessionTimes, taskId: question.taskId };
    entries.push({ kind: 'question', key: `question:${question.questionId}`, ...asked, question });
  }
  if (task && state.plan.length > 0) entries.push({ kind: 'plan', key: `plan:${task.id}`, ...times, steps: state.plan });
  if (task?.status === 'cancelled' || task?.status === 'error') {
    const { status, error, endTime } = task;
    entries.push({ kind: 'end', key: `end:${task.id}`, ...times, at: endTime ?? times.at, status, ...(error ? { error } : {}) });
  }
  const ended = new Map(task && !isRunning ? [[task.id, state.offset]] : []);
  return { entries, from: 1, offset: state.offset, boundary: { ...unknownBoundary(), current: isRunning && task ? task.id : null, ended } };
}

function entryOfMessage({ id, type, content, timestamp, isComplete, taskId }: Protocol.HistoryMessage): Entry {
  // A state does not contain the offsets of its messages.
  const times = { offset: 0, through: 0, at: timestamp, ...(taskId === undefined ? {} : { taskId }) };
  if (type === 'user') return { kind: 'prompt', key: `prompt:${id}`, ...times, text: content, files: [] };
  return { kind: 'answer', key: `answer:${id}`, ...times, role: type, text: content, isComplete };
}
