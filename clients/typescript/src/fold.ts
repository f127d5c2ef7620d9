// What an event makes of a view. Pure, and the same as what the gateway makes of it: folding all events
// up to an offset gives the state that the gateway tells for that offset.
import { complete, find, push, replace, trim } from './conversation.js';
import type { Envelope, SessionEvent } from './envelope.js';
import type { TokenUsage, ToolUpdate, Utterance } from './generated/protocol.js';
import { GATEWAY_BOUNDS, utf8Bytes } from './view.js';
import type { Bounds, View } from './view.js';

const TOOLS = 100;
const NOTES = 50;

/** The view after an event. One that was folded before changes nothing. */
export function fold(view: View, event: SessionEvent, bounds: Bounds = GATEWAY_BOUNDS): View {
  if (event.offset <= view.offset) return view;
  return trim({ ...step(view, event), offset: event.offset }, bounds);
}

/** The view after something that is not in the journal: who is here, who drives. */
export function foldAround(view: View, envelope: Envelope): View {
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

function step(view: View, event: SessionEvent): View {
  switch (event.type) {
    case 'TASK_STATUS_UPDATE':
      return status(view, event);
    case 'TASK_OUTPUT_CHUNK':
      return chunk(view, event);
    case 'MESSAGE':
      return utterance(view, event.payload, event.timestamp);
    case 'TOOL_UPDATE':
      return isLive(view, event.payload.taskId) ? { ...view, tools: withTool(view.tools, event.payload) } : view;
    case 'QUESTION': {
      const asked = event.payload;
      const isKnown = view.questions.some((open) => open.questionId === asked.questionId);
      return isKnown || !isLive(view, asked.taskId) ? view : { ...view, questions: [...view.questions, asked] };
    }
    case 'QUESTION_RESOLVED':
      return { ...view, questions: view.questions.filter((open) => open.questionId !== event.payload.questionId) };
    case 'QUEUE_UPDATE':
      return { ...view, queue: event.payload.queue, queueModes: event.payload.queueModes };
    case 'AGENT_STATE':
      return { ...view, activity: event.payload.state };
    case 'USAGE_UPDATE': {
      const left = event.payload.contextLeftPercent ?? view.contextLeftPercent;
      return { ...view, tokenUsage: plus(view.tokenUsage, event.payload), contextLeftPercent: left };
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
      return { ...view, notes: [...view.notes, { offset: event.offset, ...event.payload }].slice(-NOTES) };
    default:
      return view;
  }
}

/** Is this the run under way? Everything else about a run is too late. */
function isLive(view: View, taskId: string | undefined): boolean {
  return view.currentTask?.id === taskId && view.currentTask?.status === 'running';
}

function status(view: View, event: SessionEvent<'TASK_STATUS_UPDATE'>): View {
  const { taskId, status: now, progress } = event.payload;
  if (now === 'starting') return started(view, event);
  const current = view.currentTask;
  if (!current || !isLive(view, taskId)) return view;
  if (now !== 'running') return ended(view, event);
  // "Still at it" takes no progress back.
  return progress ? { ...view, currentTask: { ...current, progress } } : view;
}

function started(view: View, { payload, timestamp }: SessionEvent<'TASK_STATUS_UPDATE'>): View {
  const { taskId, prompt, userMessageId } = payload;
  const before = view.currentTask?.id;
  if (before === taskId) return view;
  const text = prompt?.text ?? '';
  let after: View = { ...view, tools: [], thoughts: [], currentTask: { id: taskId, status: 'running', prompt: text, startTime: timestamp } };
  if (before !== undefined) {
    // Without an end of its own, its utterances and questions would stay open for ever.
    after = { ...complete(after, before), questions: after.questions.filter((open) => open.taskId !== before) };
  }
  if (userMessageId === undefined || find(after, userMessageId)) return after;
  return push(after, { id: userMessageId, type: 'user', content: text, timestamp, isComplete: true, taskId });
}

function ended(view: View, { payload, timestamp }: SessionEvent<'TASK_STATUS_UPDATE'>): View {
  const { taskId, status: outcome, error, tokenUsage } = payload;
  const { progress, ...current } = view.currentTask!;
  const after = complete(view, taskId);
  const over: View = {
    ...after,
    activity: 'idle',
    questions: view.questions.filter((open) => open.taskId !== taskId),
    currentTask: { ...current, status: outcome, endTime: timestamp, ...(error ? { error } : {}) },
  };
  if (!tokenUsage) return over;
  const last = [...over.messages].reverse().find((message) => message.taskId === taskId && message.type === 'assistant');
  const billed = last ? replace(over, last, { ...last, tokenUsage }) : over;
  return { ...billed, tokenUsage: plus(view.tokenUsage, tokenUsage) };
}

function chunk(view: View, { payload, timestamp }: SessionEvent<'TASK_OUTPUT_CHUNK'>): View {
  const { messageId, taskId, content, channel, isComplete, withdrawn } = payload;
  if (!isLive(view, taskId)) return view;
  if (channel === 'thought') return thought(view, messageId, taskId, content);
  const known = find(view, messageId);
  if (!known) {
    // The end of what was only thought leaves no message.
    if (isComplete && !content && !withdrawn) return view;
    return push(view, { id: messageId, type: 'assistant', content, timestamp, isComplete, taskId });
  }
  if (known.isComplete || known.taskId !== taskId) return view;
  if (withdrawn) return replace(view, known, { ...known, content: '', isComplete }, -utf8Bytes(known.content));
  if (view.cut === messageId) return replace(view, known, { ...known, isComplete });
  return replace(view, known, { ...known, content: known.content + content, isComplete }, utf8Bytes(content));
}

function thought(view: View, messageId: string, taskId: string, content: string): View {
  const last = view.thoughts.at(-1);
  if (last?.messageId !== messageId) return { ...view, thoughts: [...view.thoughts, { messageId, taskId, content }] };
  return { ...view, thoughts: [...view.thoughts.slice(0, -1), { ...last, content: last.content + content }] };
}

function utterance(view: View, { id, role, content, taskId, metadata }: Utterance, timestamp: string): View {
  if (metadata?.suggestion) {
    return { ...view, suggestions: [...view.suggestions, { id, by: metadata.by, text: content }].slice(-NOTES) };
  }
  if (!isLive(view, taskId)) return view;
  const known = find(view, id);
  if (!known) return push(view, { id, type: role, content, timestamp, isComplete: true, ...(taskId ? { taskId } : {}) });
  if (known.taskId !== taskId) return view;
  const grown = utf8Bytes(content) - utf8Bytes(known.content);
  return replace(view, known, { ...known, type: role, content, isComplete: true }, grown);
}

/** The first sight of a tool creates it; a later one need not repeat what it was given and what came out. */
function withTool(tools: View['tools'], { taskId: _, ...seen }: ToolUpdate): View['tools'] {
  const known = tools.find((tool) => tool.toolCallId === seen.toolCallId);
  if (!known) return [...tools, seen].slice(-TOOLS);
  const merged = { ...seen, input: seen.input ?? known.input, output: seen.output ?? known.output };
  return tools.map((tool) => (tool === known ? merged : tool));
}

function plus(one: TokenUsage, two: TokenUsage): TokenUsage {
  const [input, output] = [one.input + two.input, one.output + two.output];
  const hasCost = one.cost !== undefined || two.cost !== undefined;
  return { input, output, total: input + output, ...(hasCost ? { cost: (one.cost ?? 0) + (two.cost ?? 0) } : {}) };
}
