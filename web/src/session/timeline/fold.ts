// What events make of a conversation.
import type { Protocol, SessionEvent } from '@switchboard/client';
import { isUnread } from '../timeline';
import type { AnswerEntry, EndEntry, Entry, PromptEntry, Timeline } from '../timeline';
import { over, resolve, withTool } from './over';
import { Draft } from './draft';

/** With more events, in order. One that was folded before changes nothing. */
export function foldAll(timeline: Timeline, events: readonly SessionEvent[]): Timeline {
  const first = events.findIndex((event) => event.offset > timeline.offset);
  const begin = events[first];
  if (!begin) return timeline;
  const draft = new Draft(timeline);
  let { offset } = timeline;
  for (const event of events.slice(first)) {
    if (event.offset <= offset) continue;
    offset = event.offset;
    step(draft, event);
  }
  return { ...draft.done(), from: isUnread(timeline) ? firstOf(begin) : timeline.from, offset };
}

/** The first offset that an event stands for. */
function firstOf(event: SessionEvent): number {
  return (event.type === 'TASK_OUTPUT_CHUNK' ? event.payload.fromOffset : undefined) ?? event.offset;
}

function step(draft: Draft, event: SessionEvent): void {
  switch (event.type) {
    case 'TASK_STATUS_UPDATE':
      return status(draft, event);
    case 'TASK_OUTPUT_CHUNK':
      return draft.isOver(event.payload.taskId) ? undefined : chunk(draft, event);
    case 'MESSAGE':
      return draft.isOver(event.payload.taskId) ? undefined : utterance(draft, event);
    case 'TOOL_UPDATE':
      return draft.isOver(event.payload.taskId) ? undefined : tool(draft, event);
    case 'QUESTION':
      return draft.isOver(event.payload.taskId) ? undefined : question(draft, event);
    case 'QUESTION_RESOLVED':
      return resolved(draft, event);
    case 'AGENT_NOTICE':
      return draft.put({ kind: 'note', key: `note:${event.offset}`, ...times(event), level: event.payload.level, text: event.payload.text });
    default:
  }
}

/** What every entry has from its first event. */
function times(event: SessionEvent, taskId?: string): Pick<Entry, 'offset' | 'through' | 'at' | 'taskId'> {
  return { offset: firstOf(event), through: event.offset, at: event.timestamp, ...(taskId === undefined ? {} : { taskId }) };
}

function status(draft: Draft, event: SessionEvent<'TASK_STATUS_UPDATE'>): void {
  const { taskId, status: now } = event.payload;
  if (now === 'starting') started(draft, event);
  else if (now === 'running') draft.isOver(taskId) || draft.live(taskId);
  else if (!draft.isOver(taskId)) ended(draft, event);
}

function started(draft: Draft, event: SessionEvent<'TASK_STATUS_UPDATE'>): void {
  const { taskId, prompt, userMessageId } = event.payload;
  const before = draft.current;
  if (before === taskId) return;
  if (before === undefined) draft.opening ??= { taskId, offset: event.offset };
  // Without an end of its own, what it left open would stay so for ever.
  else if (before !== null) end(draft, before, event.offset);
  draft.live(taskId);
  if (!prompt && userMessageId === undefined) return;
  const key = `prompt:${userMessageId ?? taskId}`;
  if (draft.find(key)) return;
  draft.put({ kind: 'prompt', key, ...times(event, taskId), ...asked(prompt) });
}

function asked(prompt: Protocol.Asked | undefined): Pick<PromptEntry, 'text' | 'by' | 'mode' | 'files'> {
  const { text = '', by, mode, attachments = [] } = prompt ?? {};
  return { text, files: attachments, ...(by === undefined ? {} : { by }), ...(mode === undefined ? {} : { mode }) };
}

function ended(draft: Draft, event: SessionEvent<'TASK_STATUS_UPDATE'>): void {
  const { taskId, status: outcome, error } = event.payload;
  const { current } = draft;
  end(draft, taskId, event.offset);
  if (outcome !== 'cancelled' && outcome !== 'error') return;
  const entry: EndEntry = { kind: 'end', key: `end:${taskId}`, ...times(event, taskId), status: outcome, ...(error ? { error } : {}) };
  // What waited and was withdrawn ends without ever having begun: that is no part of the conversation.
  if (current === taskId) draft.put(entry);
  else if (current === undefined) draft.looseEnds = [...draft.looseEnds, entry];
}

/** Nothing of a run stays open. */
function end(draft: Draft, taskId: string, offset: number): void {
  draft.ended.set(taskId, offset);
  if (draft.current === taskId) draft.current = null;
  draft.changeAll((entry) => (entry.taskId === taskId ? over(entry) : entry));
}

function chunk(draft: Draft, event: SessionEvent<'TASK_OUTPUT_CHUNK'>): void {
  const { messageId, taskId, channel } = event.payload;
  draft.live(taskId);
  if (channel === 'thought') return thought(draft, event);
  // Whoever speaks is done with thinking.
  settle(draft, `thought:${messageId}`, event.offset);
  text(draft, event);
}

function thought(draft: Draft, event: SessionEvent<'TASK_OUTPUT_CHUNK'>): void {
  const { messageId, taskId, content, isComplete } = event.payload;
  const key = `thought:${messageId}`;
  if (content) {
    const known = draft.change(key, 'thought');
    if (known) {
      known.text += content;
      known.until = event.timestamp;
      known.through = event.offset;
    } else {
      draft.put({ kind: 'thought', key, ...times(event, taskId), text: content, until: event.timestamp, isComplete: draft.settled.has(key) });
    }
  }
  if (isComplete) settle(draft, key, event.offset);
}

/** A thought is complete, also one that is not here. */
function settle(draft: Draft, key: string, offset: number): void {
  const known = draft.find(key);
  if (!known) {
    if (!draft.settled.has(key)) draft.settled.set(key, offset);
  } else if (known.kind === 'thought' && !known.isComplete) {
    const changed = draft.change(key, 'thought');
    if (changed) changed.isComplete = true;
  }
}

function text(draft: Draft, event: SessionEvent<'TASK_OUTPUT_CHUNK'>): void {
  const { messageId, taskId, content, isComplete, withdrawn } = event.payload;
  const key = `answer:${messageId}`;
  const known = draft.find(key);
  if (known?.kind === 'answer' && known.isComplete) return;
  if (withdrawn) draft.renewed.set(key, 'withdrawn');
  if (known) {
    const changed = draft.change(key, 'answer');
    if (!changed) return;
    changed.text = withdrawn ? '' : changed.text + content;
    changed.isComplete = isComplete;
    changed.through = event.offset;
  } else if (isComplete && !content && !withdrawn) {
    // The end of what was only thought leaves no answer; or that of an answer that began earlier.
    if (!draft.settled.has(key)) draft.settled.set(key, event.offset);
  } else {
    draft.put({ kind: 'answer', key, ...times(event, taskId), role: 'assistant', text: withdrawn ? '' : content, isComplete });
  }
}

function utterance(draft: Draft, event: SessionEvent<'MESSAGE'>): void {
  const { id, role, content, taskId, metadata } = event.payload;
  if (metadata?.suggestion) {
    return draft.put({ kind: 'note', key: `note:${event.offset}`, ...times(event), level: 'info', text: content, by: metadata.by });
  }
  if (role === 'user') {
    if (draft.find(`prompt:${id}`)) return;
    return draft.put({ kind: 'prompt', key: `prompt:${id}`, ...times(event, taskId), text: content, files: [] });
  }
  const key = `answer:${id}`;
  const said: Pick<AnswerEntry, 'role' | 'text' | 'isComplete'> = { role, text: content, isComplete: true };
  draft.renewed.set(key, 'replaced');
  const known = draft.change(key, 'answer');
  if (known) Object.assign(known, said, { through: event.offset });
  else draft.put({ kind: 'answer', key, ...times(event, taskId), ...said });
}

function tool(draft: Draft, event: SessionEvent<'TOOL_UPDATE'>): void {
  const { taskId, ...seen } = event.payload;
  draft.live(taskId);
  // Agents count their tools anew in each run.
  const key = `tool:${taskId}:${seen.toolCallId}`;
  const known = draft.change(key, 'tool');
  if (!known) return draft.put({ kind: 'tool', key, ...times(event, taskId), tool: seen });
  known.tool = withTool(known.tool, seen);
  known.through = event.offset;
}

function question(draft: Draft, event: SessionEvent<'QUESTION'>): void {
  const asked = event.payload;
  draft.live(asked.taskId);
  const key = `question:${asked.questionId}`;
  if (!draft.find(key)) draft.put({ kind: 'question', key, ...times(event, asked.taskId), question: asked });
}

function resolved(draft: Draft, { payload, offset, timestamp }: SessionEvent<'QUESTION_RESOLVED'>): void {
  const known = draft.change(`question:${payload.questionId}`, 'question');
  if (known) Object.assign(known, resolve(known, payload, offset, timestamp));
  else if (!draft.resolved.has(payload.questionId)) draft.resolved.set(payload.questionId, { resolved: payload, offset, at: timestamp });
}
