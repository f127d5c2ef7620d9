// What a screen shows of a session.
import type * as Protocol from './generated/protocol.js';

/** What the agent thinks aloud. */
export interface Thought {
  messageId: string;
  taskId: string;
  content: string;
}

/** Something to know about the agent. */
export interface AgentNote {
  offset: number;
  level: Protocol.AgentNotice['level'];
  text: string;
}

/** What somebody proposes to whoever drives. */
export interface Suggestion {
  id: string;
  by: string;
  text: string;
}

/** A session as of one offset. Never changed: every event makes a new one that shares what stayed. */
export interface View {
  readonly epoch: string;
  readonly offset: number;
  readonly messages: readonly Protocol.HistoryMessage[];
  readonly historyTruncated: boolean;
  /** The current or last run. */
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
  readonly settings: Protocol.AllSettings;
  readonly capabilities: readonly string[];
  /** Of the current run, as far as they were heard: no state has them. */
  readonly thoughts: readonly Thought[];
  /** The newest, as far as they were heard. */
  readonly notes: readonly AgentNote[];
  /** The newest, as far as they were heard. */
  readonly suggestions: readonly Suggestion[];
  /** Who is here. Empty as long as nobody but you was. */
  readonly presence: readonly Protocol.MemberBody[];
  /** Who drives, once it was told. */
  readonly control: Protocol.Control | undefined;
  /** Bytes of all texts. */
  readonly textBytes: number;
  /** The message that lost its end: more pieces must not be glued to what is left of it. */
  readonly cut: string | undefined;
}

/** A session in which nothing has happened. */
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
    settings: { autoApprove: false, model: 'default', maxTokens: 4096, temperature: 1 },
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

/** The view that a state stands for. Who is here and who drives is no part of it. */
export function viewOf(state: Protocol.FullState, bounds: Bounds, around: Pick<View, 'presence' | 'control'>): View {
  const messages = state.conversationHistory;
  const textBytes = messages.reduce((sum, message) => sum + utf8Bytes(message.content), 0);
  const only = messages.length === 1 && state.historyTruncated ? messages[0] : undefined;
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
    settings: state.settings,
    capabilities: state.capabilities,
    textBytes,
    // A state does not say which message was cut; only one that fills all the room can be it.
    cut: only && textBytes > bounds.bytes - 4 ? only.id : undefined,
    presence: around.presence,
    control: around.control,
  };
}

/** The state that a view stands for, as the gateway would tell it. */
export function stateOf(view: View): Protocol.FullState {
  const { messages, thoughts, notes, suggestions, presence, control, textBytes, cut, ...rest } = view;
  const state = { ...rest, conversationHistory: messages };
  return JSON.parse(JSON.stringify(state)) as Protocol.FullState;
}

/** How much of the conversation is kept. The newest message always stays, cut if need be. */
export interface Bounds {
  /** At most so many messages. */
  messages: number;
  /** At most so many bytes of text in all of them. */
  bytes: number;
}

/** What the gateway keeps in its own states. */
export const GATEWAY_BOUNDS: Bounds = { messages: 200, bytes: 512 * 1024 };

/** How many bytes a text has on the line. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let place = 0; place < text.length; place += 1) {
    const unit = text.charCodeAt(place);
    if (unit < 0x80) continue;
    // A surrogate pair has two units and four bytes.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** The longest beginning of a text with at most so many bytes, whole letters only. */
export function utf8Cut(text: string, most: number): string {
  let bytes = 0;
  let end = 0;
  for (const letter of text) {
    bytes += utf8Bytes(letter);
    if (bytes > most) break;
    end += letter.length;
  }
  return text.slice(0, end);
}
