// Fold: applies journal events to a timeline.
import type { Protocol, SessionEvent } from '@switchboard/client';
import { isEmptyTimeline } from '../timeline';
import type { AnswerEntry, EndEntry, Entry, PromptEntry, Timeline } from '../timeline';
import { closeEntry, mergeTool, resolveQuestion } from './entry-updates';
import { TimelineBuilder } from './timeline-builder';

/** The timeline with more events, in order. Folding an event twice changes nothing. */
export function foldAll(timeline: Timeline, events: readonly SessionEvent[]): Timeline {
  const first = events.findIndex((event) => event.offset > timeline.offset);
  const firstNew = events[first];
  if (!firstNew) return timeline;
  const builder = new TimelineBuilder(timeline);
  let { offset } = timeline;
  for (const event of events.slice(first)) {
    if (event.offset <= offset) continue;
    offset = event.offset;
    applyEvent(builder, event);
  }
  return { ...builder.build(), from: isEmptyTimeline(timeline) ? firstOffset(firstNew) : timeline.from, offset };
}

/** The first offset that an event covers. */
function firstOffset(event: SessionEvent): number {
  return (event.type === 'TASK_OUTPUT_CHUNK' ? event.payload.fromOffset : undefined) ?? event.offset;
}

function applyEvent(builder: TimelineBuilder, event: SessionEvent): void {
  switch (event.type) {
    case 'TASK_STATUS_UPDATE':
      return foldStatus(builder, event);
    case 'TASK_OUTPUT_CHUNK':
      return builder.hasEnded(event.payload.taskId) ? undefined : foldChunk(builder, event);
    case 'MESSAGE':
      return builder.hasEnded(event.payload.taskId) ? undefined : foldMessage(builder, event);
    case 'TOOL_UPDATE':
      return builder.hasEnded(event.payload.taskId) ? undefined : foldTool(builder, event);
    case 'QUESTION':
      return builder.hasEnded(event.payload.taskId) ? undefined : foldQuestion(builder, event);
    case 'QUESTION_RESOLVED':
      return foldResolution(builder, event);
    case 'PLAN_UPDATE':
      return builder.hasEnded(event.payload.taskId) ? undefined : foldPlan(builder, event);
    case 'AGENT_NOTICE':
      return builder.append({ kind: 'note', key: `note:${event.offset}`, ...entryTimes(event), level: event.payload.level, text: event.payload.text });
    default:
  }
}

/** The fields that an entry takes from its first event. */
function entryTimes(event: SessionEvent, taskId?: string): Pick<Entry, 'offset' | 'through' | 'at' | 'taskId'> {
  return { offset: firstOffset(event), through: event.offset, at: event.timestamp, ...(taskId === undefined ? {} : { taskId }) };
}

function foldStatus(builder: TimelineBuilder, event: SessionEvent<'TASK_STATUS_UPDATE'>): void {
  const { taskId, status: newStatus } = event.payload;
  if (newStatus === 'starting') startRun(builder, event);
  else if (newStatus === 'running') builder.hasEnded(taskId) || builder.setCurrentRun(taskId);
  else if (!builder.hasEnded(taskId)) endRun(builder, event);
}

function startRun(builder: TimelineBuilder, event: SessionEvent<'TASK_STATUS_UPDATE'>): void {
  const { taskId, prompt, userMessageId } = event.payload;
  const before = builder.current;
  if (before === taskId) return;
  if (before === undefined) builder.firstRun ??= { taskId, offset: event.offset };
  // The previous run never ended: close its entries, or they would stay open for ever.
  else if (before !== null) closeRun(builder, before, event.offset);
  builder.setCurrentRun(taskId);
  if (!prompt && userMessageId === undefined) return;
  const key = `prompt:${userMessageId ?? taskId}`;
  if (builder.find(key)) return;
  builder.append({ kind: 'prompt', key, ...entryTimes(event, taskId), ...promptFields(prompt) });
}

function promptFields(prompt: Protocol.Asked | undefined): Pick<PromptEntry, 'text' | 'by' | 'mode' | 'files'> {
  const { text = '', by, mode, attachments = [] } = prompt ?? {};
  return { text, files: attachments, ...(by === undefined ? {} : { by }), ...(mode === undefined ? {} : { mode }) };
}

function endRun(builder: TimelineBuilder, event: SessionEvent<'TASK_STATUS_UPDATE'>): void {
  const { taskId, status: outcome, error } = event.payload;
  const { current } = builder;
  closeRun(builder, taskId, event.offset);
  if (outcome !== 'cancelled' && outcome !== 'error') return;
  const entry: EndEntry = { kind: 'end', key: `end:${taskId}`, ...entryTimes(event, taskId), status: outcome, ...(error ? { error } : {}) };
  // A prompt withdrawn from the queue ends without having started: it is not part of the conversation.
  if (current === taskId) builder.append(entry);
  else if (current === undefined) builder.unmatchedEnds = [...builder.unmatchedEnds, entry];
}

/** Ends a run and closes its entries. */
function closeRun(builder: TimelineBuilder, taskId: string, offset: number): void {
  builder.ended.set(taskId, offset);
  if (builder.current === taskId) builder.current = null;
  builder.replaceAll((entry) => (entry.taskId === taskId ? closeEntry(entry) : entry));
}

function foldChunk(builder: TimelineBuilder, event: SessionEvent<'TASK_OUTPUT_CHUNK'>): void {
  const { messageId, taskId, channel } = event.payload;
  builder.setCurrentRun(taskId);
  if (channel === 'thought') return foldThought(builder, event);
  // Text ends the thought of the same message.
  completeThought(builder, `thought:${messageId}`, event.offset);
  foldText(builder, event);
}

function foldThought(builder: TimelineBuilder, event: SessionEvent<'TASK_OUTPUT_CHUNK'>): void {
  const { messageId, taskId, content, isComplete } = event.payload;
  const key = `thought:${messageId}`;
  if (content) {
    const existing = builder.editable(key, 'thought');
    if (existing) {
      existing.text += content;
      existing.until = event.timestamp;
      existing.through = event.offset;
    } else {
      builder.append({ kind: 'thought', key, ...entryTimes(event, taskId), text: content, until: event.timestamp, isComplete: builder.settled.has(key) });
    }
  }
  if (isComplete) completeThought(builder, key, event.offset);
}

/** Completes a thought, also one that is on an older page. */
function completeThought(builder: TimelineBuilder, key: string, offset: number): void {
  const existing = builder.find(key);
  if (!existing) {
    if (!builder.settled.has(key)) builder.settled.set(key, offset);
  } else if (existing.kind === 'thought' && !existing.isComplete) {
    const changed = builder.editable(key, 'thought');
    if (changed) changed.isComplete = true;
  }
}

function foldText(builder: TimelineBuilder, event: SessionEvent<'TASK_OUTPUT_CHUNK'>): void {
  const { messageId, taskId, content, isComplete, withdrawn } = event.payload;
  const key = `answer:${messageId}`;
  const existing = builder.find(key);
  if (existing?.kind === 'answer' && existing.isComplete) return;
  if (withdrawn) builder.rewritten.set(key, 'withdrawn');
  if (existing) {
    const changed = builder.editable(key, 'answer');
    if (!changed) return;
    changed.text = withdrawn ? '' : changed.text + content;
    changed.isComplete = isComplete;
    changed.through = event.offset;
  } else if (isComplete && !content && !withdrawn) {
    // The end of a message without text here: it had only thoughts, or its text is on an older page.
    if (!builder.settled.has(key)) builder.settled.set(key, event.offset);
  } else {
    builder.append({ kind: 'answer', key, ...entryTimes(event, taskId), role: 'assistant', text: withdrawn ? '' : content, isComplete });
  }
}

function foldMessage(builder: TimelineBuilder, event: SessionEvent<'MESSAGE'>): void {
  const { id, role, content, taskId, format, metadata } = event.payload;
  if (role === 'user' && metadata?.suggestion) {
    return builder.append({ kind: 'note', key: `note:${event.offset}`, ...entryTimes(event), level: 'info', text: content, by: metadata.by ?? '' });
  }
  if (role === 'user') {
    if (builder.find(`prompt:${id}`)) return;
    return builder.append({ kind: 'prompt', key: `prompt:${id}`, ...entryTimes(event, taskId), text: content, files: [] });
  }
  const key = `answer:${id}`;
  const sources = sourceNames(metadata?.['source_documents']);
  const fields: Pick<AnswerEntry, 'role' | 'text' | 'isComplete' | 'isPlain' | 'sources'> = {
    role,
    text: content,
    isComplete: true,
    ...(format === 'text' ? { isPlain: true } : {}),
    ...(sources.length > 0 ? { sources } : {}),
  };
  builder.rewritten.set(key, 'replaced');
  const existing = builder.editable(key, 'answer');
  if (existing) Object.assign(existing, fields, { through: event.offset });
  else builder.append({ kind: 'answer', key, ...entryTimes(event, taskId), ...fields });
}

/** Names of the documents that an agent calls its sources: texts, or objects with a name in them. */
function sourceNames(documents: unknown): string[] {
  if (!Array.isArray(documents)) return [];
  const names = documents.map((document: unknown) => {
    if (typeof document === 'string') return document;
    if (typeof document !== 'object' || document === null) return undefined;
    const fields = document as Record<string, unknown>;
    return ['title', 'name', 'path', 'url', 'source', 'id'].map((field) => fields[field]).find((name) => typeof name === 'string');
  });
  return names.filter((name) => typeof name === 'string' && name !== '').slice(0, 20) as string[];
}

function foldTool(builder: TimelineBuilder, event: SessionEvent<'TOOL_UPDATE'>): void {
  const { taskId, ...update } = event.payload;
  builder.setCurrentRun(taskId);
  // Tool call ids are unique only within a run.
  const key = `tool:${taskId}:${update.toolCallId}`;
  const existing = builder.editable(key, 'tool');
  if (!existing) return builder.append({ kind: 'tool', key, ...entryTimes(event, taskId), tool: update });
  existing.tool = mergeTool(existing.tool, update);
  existing.through = event.offset;
}

/** A plan reported by an older gateway names no run; it is left out. */
function foldPlan(builder: TimelineBuilder, event: SessionEvent<'PLAN_UPDATE'>): void {
  const { taskId, steps } = event.payload;
  if (taskId === undefined) return;
  builder.setCurrentRun(taskId);
  const key = `plan:${taskId}`;
  const existing = builder.editable(key, 'plan');
  if (existing) Object.assign(existing, { steps, through: event.offset });
  else if (steps.length > 0) builder.append({ kind: 'plan', key, ...entryTimes(event, taskId), steps });
}

function foldQuestion(builder: TimelineBuilder, event: SessionEvent<'QUESTION'>): void {
  const question = event.payload;
  if (question.taskId !== undefined) builder.setCurrentRun(question.taskId);
  const key = `question:${question.questionId}`;
  if (!builder.find(key)) builder.append({ kind: 'question', key, ...entryTimes(event, question.taskId), question });
}

function foldResolution(builder: TimelineBuilder, { payload, offset, timestamp }: SessionEvent<'QUESTION_RESOLVED'>): void {
  const existing = builder.editable(`question:${payload.questionId}`, 'question');
  if (existing) Object.assign(existing, resolveQuestion(existing, payload, offset, timestamp));
  else if (!builder.resolved.has(payload.questionId)) builder.resolved.set(payload.questionId, { resolved: payload, offset, at: timestamp });
}
