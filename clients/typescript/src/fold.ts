// Fold: applies journal events to a view. Pure, and equal to the gateway's own fold: folding all events up to
// an offset gives the `FULL_STATE` of that offset.
import type { Envelope, SessionEvent } from './envelope.js';
import type { TokenUsage, ToolUpdate, Utterance } from './generated/protocol.js';
import { appendMessage, completeMessages, findMessage, replaceMessage, trimMessages } from './messages.js';
import { utf8Length } from './utf8.js';
import { GATEWAY_BOUNDS } from './view.js';
import type { Bounds, View } from './view.js';

const MAX_TOOLS = 100;
const MAX_NOTES = 50;

/** The view after an event. Folding an event twice changes nothing. */
export function fold(view: View, event: SessionEvent, bounds: Bounds = GATEWAY_BOUNDS): View {
  if (event.offset <= view.offset) return view;
  return trimMessages({ ...applyEvent(view, event), offset: event.offset }, bounds);
}

/** The view after a message that is not journaled: presence, control, capabilities. */
export function foldTransient(view: View, envelope: Envelope): View {
  switch (envelope.type) {
    case 'PRESENCE':
      return { ...view, presence: envelope.payload.members };
    case 'CONTROL_UPDATE':
      return { ...view, control: envelope.payload };
    case 'CONNECTION_ACK':
      return { ...view, capabilities: envelope.payload.capabilities };
    default:
      return view;
  }
}

function applyEvent(view: View, event: SessionEvent): View {
  switch (event.type) {
    case 'TASK_STATUS_UPDATE':
      return foldStatus(view, event);
    case 'TASK_OUTPUT_CHUNK':
      return foldChunk(view, event);
    case 'MESSAGE':
      return foldMessage(view, event.payload, event.timestamp);
    case 'TOOL_UPDATE':
      return isCurrentRun(view, event.payload.taskId) ? { ...view, tools: upsertTool(view.tools, event.payload) } : view;
    case 'QUESTION': {
      const question = event.payload;
      const isKnown = view.questions.some((open) => open.questionId === question.questionId);
      // One without a run is the session's own.
      const isLate = question.taskId !== undefined && !isCurrentRun(view, question.taskId);
      return isKnown || isLate ? view : { ...view, questions: [...view.questions, question] };
    }
    case 'QUESTION_RESOLVED':
      return { ...view, questions: view.questions.filter((open) => open.questionId !== event.payload.questionId) };
    case 'QUEUE_UPDATE':
      return { ...view, queue: event.payload.queue, queueModes: event.payload.queueModes };
    case 'AGENT_STATE':
      return { ...view, activity: event.payload.state };
    case 'USAGE_UPDATE': {
      const contextLeftPercent = event.payload.contextLeftPercent ?? view.contextLeftPercent;
      return { ...view, tokenUsage: addUsage(view.tokenUsage, event.payload), contextLeftPercent };
    }
    case 'PLAN_UPDATE':
      return { ...view, plan: event.payload.steps };
    case 'STATE_UPDATE': {
      const { updates } = event.payload;
      if ('tools' in updates) return { ...view, enabledTools: updates.tools };
      return { ...view, settings: { ...view.settings, ...updates.settings } };
    }
    case 'COMMANDS_UPDATE':
      return { ...view, commands: event.payload.commands };
    case 'TITLE_UPDATE':
      return { ...view, title: event.payload.title };
    case 'AGENT_NOTICE':
      return { ...view, notes: [...view.notes, { offset: event.offset, ...event.payload }].slice(-MAX_NOTES) };
    default:
      return view;
  }
}

/** Whether this is the running run. Events of any other run come too late. */
function isCurrentRun(view: View, taskId: string | undefined): boolean {
  return view.currentTask?.id === taskId && view.currentTask?.status === 'running';
}

function foldStatus(view: View, event: SessionEvent<'TASK_STATUS_UPDATE'>): View {
  const { taskId, status: newStatus, progress } = event.payload;
  if (newStatus === 'starting') return startRun(view, event);
  const current = view.currentTask;
  if (!current || !isCurrentRun(view, taskId)) return view;
  if (newStatus !== 'running') return endRun(view, event);
  // A status update without progress keeps the progress shown so far.
  return progress ? { ...view, currentTask: { ...current, progress } } : view;
}

function startRun(view: View, { payload, timestamp }: SessionEvent<'TASK_STATUS_UPDATE'>): View {
  const { taskId, prompt, userMessageId } = payload;
  const before = view.currentTask?.id;
  if (before === taskId) return view;
  const text = prompt?.text ?? '';
  let after: View = { ...view, tools: [], thoughts: [], currentTask: { id: taskId, status: 'running', prompt: text, startTime: timestamp } };
  if (before !== undefined) {
    // The previous run never ended: close its messages and questions, or they would stay open for ever.
    after = { ...completeMessages(after, before), questions: after.questions.filter((open) => open.taskId !== before) };
  }
  if (userMessageId === undefined || findMessage(after, userMessageId)) return after;
  return appendMessage(after, { id: userMessageId, type: 'user', content: text, timestamp, isComplete: true, taskId });
}

function endRun(view: View, { payload, timestamp }: SessionEvent<'TASK_STATUS_UPDATE'>): View {
  const { taskId, status: outcome, error, tokenUsage } = payload;
  const { progress, ...current } = view.currentTask!;
  const completed = completeMessages(view, taskId);
  const ended: View = {
    ...completed,
    activity: 'idle',
    questions: view.questions.filter((open) => open.taskId !== taskId),
    currentTask: { ...current, status: outcome, endTime: timestamp, ...(error ? { error } : {}) },
  };
  if (!tokenUsage) return ended;
  const last = [...ended.messages].reverse().find((message) => message.taskId === taskId && message.type === 'assistant');
  const withUsage = last ? replaceMessage(ended, last, { ...last, tokenUsage }) : ended;
  return { ...withUsage, tokenUsage: addUsage(view.tokenUsage, tokenUsage) };
}

function foldChunk(view: View, { payload, timestamp }: SessionEvent<'TASK_OUTPUT_CHUNK'>): View {
  const { messageId, taskId, content, channel, isComplete, withdrawn } = payload;
  if (!isCurrentRun(view, taskId)) return view;
  if (channel === 'thought') return foldThought(view, messageId, taskId, content);
  const existing = findMessage(view, messageId);
  if (!existing) {
    // A message that had only thoughts leaves no text.
    if (isComplete && !content && !withdrawn) return view;
    return appendMessage(view, { id: messageId, type: 'assistant', content, timestamp, isComplete, taskId });
  }
  if (existing.isComplete || existing.taskId !== taskId) return view;
  if (withdrawn) return replaceMessage(view, existing, { ...existing, content: '', isComplete }, -utf8Length(existing.content));
  if (view.cut === messageId) return replaceMessage(view, existing, { ...existing, isComplete });
  return replaceMessage(view, existing, { ...existing, content: existing.content + content, isComplete }, utf8Length(content));
}

function foldThought(view: View, messageId: string, taskId: string, content: string): View {
  const last = view.thoughts.at(-1);
  if (last?.messageId !== messageId) return { ...view, thoughts: [...view.thoughts, { messageId, taskId, content }] };
  return { ...view, thoughts: [...view.thoughts.slice(0, -1), { ...last, content: last.content + content }] };
}

function foldMessage(view: View, { id, role, content, taskId, format, metadata }: Utterance, timestamp: string): View {
  if (role === 'user' && metadata?.suggestion) {
    return { ...view, suggestions: [...view.suggestions, { id, by: metadata.by ?? '', text: content }].slice(-MAX_NOTES) };
  }
  // What an agent says about its message; a person's has nothing to say.
  const details = role === 'assistant' ? { format, ...(metadata ? { metadata } : {}) } : {};
  if (!isCurrentRun(view, taskId)) return view;
  const existing = findMessage(view, id);
  if (!existing) return appendMessage(view, { id, type: role, content, timestamp, isComplete: true, ...(taskId ? { taskId } : {}), ...details });
  if (existing.taskId !== taskId) return view;
  const byteDelta = utf8Length(content) - utf8Length(existing.content);
  return replaceMessage(view, existing, { ...existing, type: role, content, isComplete: true, ...details }, byteDelta);
}

/** Creates or updates a tool; an update may leave out `input` and `output`. */
function upsertTool(tools: View['tools'], { taskId: _, ...update }: ToolUpdate): View['tools'] {
  const existing = tools.find((tool) => tool.toolCallId === update.toolCallId);
  if (!existing) return [...tools, update].slice(-MAX_TOOLS);
  const merged = { ...update, input: update.input ?? existing.input, output: update.output ?? existing.output };
  return tools.map((tool) => (tool === existing ? merged : tool));
}

function addUsage(one: TokenUsage, two: TokenUsage): TokenUsage {
  const [input, output] = [one.input + two.input, one.output + two.output];
  const hasCost = one.cost !== undefined || two.cost !== undefined;
  return { input, output, total: input + output, ...(hasCost ? { cost: (one.cost ?? 0) + (two.cost ?? 0) } : {}) };
}
