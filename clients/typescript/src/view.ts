// View: the state of a session as a screen shows it.
import type * as Protocol from './generated/protocol.js';
import { utf8Length } from './utf8.js';

/** Reasoning that the agent made visible. */
export interface Thought {
  messageId: string;
  taskId: string;
  content: string;
}

/** A notice from the agent. */
export interface AgentNote {
  offset: number;
  level: Protocol.AgentNotice['level'];
  text: string;
}

/** A prompt that one member proposes to the member in control. */
export interface Suggestion {
  id: string;
  by: string;
  text: string;
}

/** A session as of one offset. Immutable: each event makes a new view that shares its unchanged parts. */
export interface View {
  readonly epoch: string;
  readonly offset: number;
  readonly messages: readonly Protocol.HistoryMessage[];
  readonly historyTruncated: boolean;
  /** The current or the last run. */
  readonly currentTask: Protocol.TaskState | undefined;
  readonly tools: readonly Protocol.ToolState[];
  readonly questions: readonly Protocol.Question[];
  readonly queue: readonly Protocol.QueuedTask[];
  readonly queueModes: Protocol.QueueModes;
  readonly plan: readonly Protocol.Step[];
  readonly activity: Protocol.AgentState['state'];
  readonly tokenUsage: Protocol.TokenUsage;
  readonly contextLeftPercent: number | undefined;
  readonly title: string | undefined;
  readonly commands: readonly Protocol.CommandInfo[];
  readonly enabledTools: readonly string[] | undefined;
  /** What the agent reported or a member chose; what is not known is absent. */
  readonly settings: Protocol.AllSettings;
  readonly capabilities: readonly string[];
  /** Of the current run, as far as received: no state contains them. */
  readonly thoughts: readonly Thought[];
  /** The newest, as far as received. */
  readonly notes: readonly AgentNote[];
  /** The newest, as far as received. */
  readonly suggestions: readonly Suggestion[];
  /** The members that are connected. Empty until a second one joins. */
  readonly presence: readonly Protocol.MemberBody[];
  /** Which member is in control, once the gateway has said so. */
  readonly control: Protocol.Control | undefined;
  /** The bytes of all message texts. */
  readonly textBytes: number;
  /** The message whose end was cut off: further chunks must not be appended to it. */
  readonly cut: string | undefined;
}

/** A session without events. */
export function emptyView(epoch = ''): View {
  return {
    epoch,
    offset: 0,
    messages: [],
    historyTruncated: false,
    currentTask: undefined,
    tools: [],
    questions: [],
    queue: [],
    queueModes: { steering: 'one-at-a-time', followUp: 'one-at-a-time' },
    plan: [],
    activity: 'idle',
    tokenUsage: { input: 0, output: 0, total: 0 },
    contextLeftPercent: undefined,
    title: undefined,
    commands: [],
    enabledTools: undefined,
    settings: { autoApprove: false },
    capabilities: [],
    thoughts: [],
    notes: [],
    suggestions: [],
    presence: [],
    control: undefined,
    textBytes: 0,
    cut: undefined,
  };
}

/** The view of a state. Presence and control are not part of a state, so they are kept. */
export function viewOf(state: Protocol.FullState, bounds: Bounds, transient: Pick<View, 'presence' | 'control'>): View {
  const messages = state.conversationHistory;
  const textBytes = messages.reduce((sum, message) => sum + utf8Length(message.content), 0);
  const single = messages.length === 1 && state.historyTruncated ? messages[0] : undefined;
  return {
    ...emptyView(state.epoch),
    offset: state.offset,
    messages,
    historyTruncated: state.historyTruncated,
    currentTask: state.currentTask,
    tools: state.tools,
    questions: state.questions,
    queue: state.queue,
    queueModes: state.queueModes,
    plan: state.plan,
    activity: state.activity,
    tokenUsage: state.tokenUsage,
    contextLeftPercent: state.contextLeftPercent,
    title: state.title,
    commands: state.commands,
    enabledTools: state.enabledTools,
    settings: state.settings ?? { autoApprove: false },
    capabilities: state.capabilities,
    textBytes,
    // A state does not say which message was cut; only a single one that fills the whole bound can be.
    cut: single && textBytes > bounds.bytes - 4 ? single.id : undefined,
    presence: transient.presence,
    control: transient.control,
  };
}

/** The state of a view, as the gateway would send it. */
export function stateOf(view: View): Protocol.FullState {
  const { messages, thoughts, notes, suggestions, presence, control, textBytes, cut, ...rest } = view;
  const state = { ...rest, conversationHistory: messages };
  return JSON.parse(JSON.stringify(state)) as Protocol.FullState;
}

/** How much of the conversation a view keeps. The newest message always stays, cut if necessary. */
export interface Bounds {
  /** The most messages. */
  messages: number;
  /** The most bytes of text in all messages. */
  bytes: number;
}

/** The gateway's own bounds. */
export const GATEWAY_BOUNDS: Bounds = { messages: 200, bytes: 512 * 1024 };
