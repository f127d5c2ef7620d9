// A conversation from what a state has of it.
import type { Protocol } from '@switchboard/client';
import type { Entry, Timeline } from '../timeline';
import { openBorder } from './border';

/** As much as a state has of it, for a journal of which nothing else is left. */
export function ofState(state: Protocol.FullState): Timeline {
  const task = state.currentTask;
  const isRunning = task?.status === 'running' || task?.status === 'starting';
  const times = { offset: state.offset, through: state.offset, at: task?.startTime ?? '', ...(task ? { taskId: task.id } : {}) };
  const entries: Entry[] = state.conversationHistory.map(said);
  for (const tool of state.tools) entries.push({ kind: 'tool', key: `tool:${task?.id}:${tool.toolCallId}`, ...times, tool });
  for (const question of state.questions) {
    entries.push({ kind: 'question', key: `question:${question.questionId}`, ...times, taskId: question.taskId, question });
  }
  if (task?.status === 'cancelled' || task?.status === 'error') {
    const { status, error, endTime } = task;
    entries.push({ kind: 'end', key: `end:${task.id}`, ...times, at: endTime ?? times.at, status, ...(error ? { error } : {}) });
  }
  const ended = new Map(task && !isRunning ? [[task.id, state.offset]] : []);
  return { entries, from: 1, offset: state.offset, border: { ...openBorder(), current: isRunning && task ? task.id : null, ended } };
}

function said({ id, type, content, timestamp, isComplete, taskId }: Protocol.HistoryMessage): Entry {
  // A state does not tell with which event something was said.
  const times = { offset: 0, through: 0, at: timestamp, ...(taskId === undefined ? {} : { taskId }) };
  if (type === 'user') return { kind: 'prompt', key: `prompt:${id}`, ...times, text: content, files: [] };
  return { kind: 'answer', key: `answer:${id}`, ...times, role: type, text: content, isComplete };
}
