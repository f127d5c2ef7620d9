// Made by scripts/generate.mjs from the gateway's AsyncAPI document. Do not edit.

/** What a client can send: the payload of each type. */
export interface ClientPayloads {
  ANSWER: Answer;
  AUTH_REFRESH: AuthRefresh;
  BRANCH_SESSION: BranchSession;
  CANCEL_TASK: CancelTask;
  EXTENSION: Extension;
  FOLLOW_UP: Aloud;
  HEARTBEAT: Empty;
  QUERY: Query;
  RELEASE_CONTROL: Empty;
  REQUEST_STATE: RequestState;
  SET_QUEUE_MODE: SetQueueMode;
  SET_TOOLS: SetTools;
  STEER: Aloud;
  SUBMIT_PROMPT: SubmitPrompt;
  SUGGEST: Aloud;
  TAKE_CONTROL: TakeControl;
  UPDATE_CONTEXT: Context;
  UPDATE_SETTINGS: UpdateSettings;
  WITHDRAW: Withdraw;
}

/** What the gateway sends: the payload of each type. */
export interface GatewayPayloads {
  ACK: Done;
  AGENT_NOTICE: AgentNotice;
  AGENT_STATE: AgentState;
  COMMANDS_UPDATE: Commands;
  CONNECTION_ACK: ConnectionAck;
  CONTROL_UPDATE: Control;
  ERROR_MESSAGE: Error;
  FULL_STATE: FullState;
  HEARTBEAT: Empty;
  MESSAGE: Utterance;
  NOTICE: Notice;
  PLAN_UPDATE: Plan;
  PRESENCE: Presence;
  QUERY_RESULT: QueryResult;
  QUESTION: Question;
  QUESTION_RESOLVED: Resolved;
  QUEUE_UPDATE: Queue;
  RAW: Raw;
  STATE_UPDATE: StateUpdate;
  TASK_OUTPUT_CHUNK: Chunk;
  TASK_STATUS_UPDATE: TaskStatus;
  TITLE_UPDATE: Title;
  TOKEN_EXPIRING: Expiring;
  TOOL_UPDATE: ToolUpdate;
  USAGE_UPDATE: TokenUsage;
}

/** The types that stand in the journal. */
export type EventType = "AGENT_NOTICE" | "AGENT_STATE" | "COMMANDS_UPDATE" | "MESSAGE" | "PLAN_UPDATE" | "QUESTION" | "QUESTION_RESOLVED" | "QUEUE_UPDATE" | "RAW" | "STATE_UPDATE" | "TASK_OUTPUT_CHUNK" | "TASK_STATUS_UPDATE" | "TITLE_UPDATE" | "TOOL_UPDATE" | "USAGE_UPDATE";

/** The first thing a client is told. */
export type Ack = {
  /** Who works in the session. */
  agent: string;
  /** What can be done here beyond the core of the protocol. */
  capabilities: Array<string>;
  /** This connection. */
  connectionId: ConnectionId;
  /** Which counting of offsets is in force. */
  epoch: Epoch;
  /** How often the gateway asks for a sign of life. */
  heartbeatSeconds: number;
  /** What may be sent. */
  limits: AckLimits;
  /** The last offset of the journal. */
  offset: number;
  /** What follows. */
  resume: Resume;
  /** The version of the gateway. */
  serverVersion: string;
  /** The session that was joined. */
  sessionId: SessionId;
  /** When the token that opened this connection expires. */
  tokenExpiresAt: string;
};

/** The limits that a client is told. */
export type AckLimits = {
  /** Bytes of an uploaded file. */
  attachmentBytes: number;
  /** Levels of nesting in a frame. */
  depth: number;
  /** Heartbeats of one connection in any 60 seconds. */
  heartbeatsPerMinute: number;
  /** Bytes of an id that the client chooses. */
  idBytes: number;
  /** Bytes of a whole frame. */
  messageBytes: number;
  /** Messages of one session in any 60 seconds. */
  messagesPerMinute: number;
  /** Characters of a prompt. */
  promptChars: number;
  /** State requests of one session in any 60 seconds. */
  stateRequestsPerMinute: number;
};

/** `AgentNotice` of the gateway's description. */
export type AgentNotice = {
  level: "info" | "warn" | "error";
  text: string;
};

/** `AgentState` of the gateway's description. */
export type AgentState = {
  state: "idle" | "thinking" | "executing_tool" | "waiting_for_input";
};

/** `AllSettings` of the gateway's description. */
export type AllSettings = {
  autoApprove: boolean;
  maxTokens: number;
  mode?: string;
  model: string;
  temperature: number;
};

/** `Aloud` of the gateway's description. */
export type Aloud = {
  /** At most as many characters as a prompt. */
  text: string;
};

/** `Answer` of the gateway's description. */
export type Answer = SaidOnce & {
  questionId: QuestionId;
  /** At most 2000 characters. */
  reason?: string | null;
  /** Where the question allows it. */
  remember?: boolean | null;
};

/** A file that was uploaded before, or one that is in the message. */
export type AnyAttachment = {
  attachmentId: AttachmentId;
} | {
  content: string;
  /** 1 to 255 characters; of a path only what follows the last slash is kept. */
  name: string;
  /** The media type. */
  type: string;
};

/** What was asked. */
export type Asked = {
  attachments?: Array<AskedFile>;
  /** Who asked. */
  by?: string;
  mode: "plan" | "act";
  text: string;
};

/** A file, without what is in it: an event must not weigh what its prompt did. */
export type AskedFile = {
  attachmentId?: AttachmentId;
  name?: string;
  size?: number;
  type?: string;
};

/** `AskedTool` of the gateway's description. */
export type AskedTool = {
  args: unknown;
  name: string;
  toolCallId: string;
};

/** `AttachmentId` of the gateway's description. */
export type AttachmentId = string;

/** `AuthRefresh` of the gateway's description. */
export type AuthRefresh = {
  /** Of the same user. */
  token: string;
};

/** `BranchSession` of the gateway's description. */
export type BranchSession = {
  /** Up to which event; all of them if absent. */
  fromOffset?: number | null;
};

/** `CancelTask` of the gateway's description. */
export type CancelTask = {
  taskId?: RunId | null;
};

/** `ChangedSettings` of the gateway's description. */
export type ChangedSettings = {
  autoApprove?: boolean;
  maxTokens?: number;
  mode?: string;
  model?: string;
  temperature?: number;
};

/** `Chunk` of the gateway's description. */
export type Chunk = {
  channel: "text" | "thought";
  chunkIndex: number;
  content: string;
  fromOffset?: number;
  isComplete: boolean;
  /** Tells the utterances of one run apart, and finds the one that a state left unfinished. */
  messageId: MessageId;
  taskId: RunId;
  /** What the utterance has said so far does not count: the agent begins again. */
  withdrawn?: boolean;
};

/** A command that the agent understands. */
export type CommandInfo = {
  description: string;
  name: string;
};

/** `Commands` of the gateway's description. */
export type Commands = {
  commands: Array<CommandInfo>;
};

/** `ConnectionAck` of the gateway's description. */
export type ConnectionAck = Ack & {
  protocolVersion: string;
};

/** `ConnectionId` of the gateway's description. */
export type ConnectionId = string;

/** Whatever the client knows about where its user is; at most 64 KiB. */
export type Context = Record<string, unknown>;

/** `Control` of the gateway's description. */
export type Control = {
  connectionId?: ConnectionId;
  expiresAt?: Moment;
  fence: number;
  mode: "open" | "exclusive";
  username?: string;
};

/** What a request came to. What does not apply to it is absent; of many there is nothing to say. */
export type Done = {
  /** Was it this answer that ended it? */
  accepted?: boolean;
  answer?: Given;
  by?: string;
  byUserId?: UserId;
  /** Who drives now. */
  control?: Control;
  epoch?: Epoch;
  offset?: number;
  outcome?: "allowed" | "denied" | "answered" | "expired" | "cancelled";
  /** The question that was answered, and how it ended. */
  questionId?: QuestionId;
  /** The task waits for its turn. */
  queued?: boolean;
  /** It was carried out earlier, under the same key. */
  repeated?: boolean;
  /** What an agent said to an `EXTENSION`. */
  result?: unknown;
  /** The session that was branched off, and where its journal stands. */
  sessionId?: SessionId;
  /** The task that it concerned. */
  taskId?: RunId;
  /** When the newer token expires. */
  tokenExpiresAt?: Moment;
};

/** Nothing. */
export type Empty = Record<string, unknown>;

/** `Epoch` of the gateway's description. */
export type Epoch = string;

/** `Error` of the gateway's description. */
export type Error = {
  code: "AUTH_FAILED" | "SESSION_EXPIRED" | "FORBIDDEN" | "INVALID_MESSAGE" | "VALIDATION_ERROR" | "NOT_FOUND" | "RATE_LIMITED" | "TASK_FAILED" | "CONNECTION_LOST" | "UNSUPPORTED" | "BUSY" | "STORAGE_UNAVAILABLE" | "INTERNAL";
  /** The field or the limit, for programs. */
  details?: Record<string, unknown>;
  /** What a person reads. */
  message: string;
  /** Can the client go on as before? */
  recoverable: boolean;
};

/** `Expiring` of the gateway's description. */
export type Expiring = {
  expiresAt: string;
};

/** `Extension` of the gateway's description. */
export type Extension = {
  name: string;
  payload?: unknown;
};

/** `FullState` of the gateway's description. */
export type FullState = Queue & {
  activity: "idle" | "thinking" | "executing_tool" | "waiting_for_input";
  capabilities: Array<string>;
  commands: Array<CommandInfo>;
  contextLeftPercent?: number;
  conversationHistory: Array<HistoryMessage>;
  currentTask?: TaskState;
  /** The tools that were chosen; absent as long as nobody has. */
  enabledTools?: Array<string>;
  epoch: Epoch;
  historyTruncated: boolean;
  offset: number;
  plan: Array<Step>;
  questions: Array<Question>;
  settings: AllSettings;
  title?: string;
  tokenUsage: TokenUsage;
  tools: Array<ToolState>;
};

/** What was said. */
export type Given = {
  ids?: Array<string>;
  ok?: boolean;
  optionId?: string;
  reason?: string;
  remember?: boolean;
  value?: string;
};

/** `HistoryMessage` of the gateway's description. */
export type HistoryMessage = {
  content: string;
  id: MessageId;
  isComplete: boolean;
  taskId?: RunId;
  timestamp: string;
  tokenUsage?: TokenUsage;
  type: "user" | "assistant" | "system";
};

/** Somebody in a session. */
export type MemberBody = {
  access: "viewer" | "editor" | "owner";
  /** How many connections they have. */
  connections: number;
  /** Who. */
  userId: UserId;
  /** Their name. */
  username: string;
};

/** `MessageId` of the gateway's description. */
export type MessageId = string;

/** A time that is written as [`moment`] does, where it may be absent. */
export type Moment = string;

/** `Notice` of the gateway's description. */
export type Notice = {
  level: "info" | "warn" | "error";
  message: string;
};

/** `Offer` of the gateway's description. */
export type Offer = {
  detail?: string;
  id: string;
  kind?: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  label: string;
};

/** `Plan` of the gateway's description. */
export type Plan = {
  steps: Array<Step>;
};

/** `Presence` of the gateway's description. */
export type Presence = {
  members: Array<MemberBody>;
};

/** `Query` of the gateway's description. */
export type Query = {
  kind: "models" | "mcp" | "skills" | "commands" | "tree";
  params?: Record<string, unknown> | null;
};

/** `QueryResult` of the gateway's description. */
export type QueryResult = {
  kind: "models" | "mcp" | "skills" | "commands" | "tree";
  result: unknown;
};

/** A question that waits. */
export type Question = {
  allowReason: boolean;
  allowRemember: boolean;
  cancelLabel?: string;
  confirmLabel?: string;
  defaultValue?: string;
  expiresAt?: Moment;
  kind: "permission" | "confirm" | "prompt" | "pick";
  level: "INFO" | "WARN" | "CRITICAL";
  message: string;
  multi: boolean;
  multiline: boolean;
  options: Array<Offer>;
  questionId: QuestionId;
  secret: boolean;
  taskId: RunId;
  title: string;
  tool?: AskedTool;
};

/** `QuestionId` of the gateway's description. */
export type QuestionId = string;

/** The queue, all of it. */
export type Queue = {
  queue: Array<QueuedTask>;
  queueModes: QueueModes;
};

/** `QueueModes` of the gateway's description. */
export type QueueModes = {
  followUp: "one-at-a-time" | "all";
  steering: "one-at-a-time" | "all";
};

/** `QueuedTask` of the gateway's description. */
export type QueuedTask = {
  by?: string;
  kind: "steer" | "followUp" | "prompt";
  taskId: RunId;
  /** The beginning of it. */
  text: string;
};

/** `Raw` of the gateway's description. */
export type Raw = {
  dialect: string;
  value: unknown;
};

/** `RequestState` of the gateway's description. */
export type RequestState = {
  /** With the conversation; yes if absent. */
  includeHistory?: boolean | null;
  /** Settings are part of the state either way. */
  includeSettings?: boolean | null;
};

/** How a question ended. */
export type Resolved = {
  answer?: Given;
  by: string;
  byUserId?: UserId;
  outcome: "allowed" | "denied" | "answered" | "expired" | "cancelled";
  questionId: QuestionId;
  taskId?: RunId;
};

/** How a connection begins. */
export type Resume = "new" | "replayed" | "snapshot";

/** `RunId` of the gateway's description. */
export type RunId = string;

/** Exactly one of them. */
export type SaidOnce = {
  ok: boolean;
} | {
  optionId: string;
} | {
  value: string;
} | {
  ids: Array<string>;
};

/** `SessionId` of the gateway's description. */
export type SessionId = string;

/** At least one of them. */
export type SetQueueMode = {
  followUp?: "one-at-a-time" | "all";
  steering?: "one-at-a-time" | "all";
};

/** `SetTools` of the gateway's description. */
export type SetTools = {
  /** At most 256. */
  tools: Array<string>;
};

/** At least one of them; others are refused. */
export type SettingsToChange = {
  autoApprove?: boolean | null;
  maxTokens?: number | null;
  mode?: string | null;
  model?: string | null;
  temperature?: number | null;
};

/** `StateUpdate` of the gateway's description. */
export type StateUpdate = {
  updates: Updates;
};

/** A step of a plan. */
export type Step = {
  status: string;
  title: string;
};

/** `SubmitPrompt` of the gateway's description. */
export type SubmitPrompt = {
  attachments?: Array<AnyAttachment> | null;
  /** Where the user is; at most 64 KiB. */
  context?: Record<string, unknown> | null;
  ifBusy?: "queue" | "refuse";
  /** Base64. */
  images?: Array<string> | null;
  /** Whatever the agent understands besides; at most 64 KiB. */
  meta?: Record<string, unknown> | null;
  mode: "plan" | "act";
  /** At most as many characters as the limits of the acknowledgement say. */
  text: string;
};

/** Proposed to whoever drives; the agent does not hear it. */
export type Suggestion = {
  /** Who. */
  by: string;
  suggestion: boolean;
};

/** `TakeControl` of the gateway's description. */
export type TakeControl = {
  /** Also from somebody who drives now. */
  steal?: boolean | null;
};

/** Why a task failed. */
export type TaskError = {
  code: "AUTH_FAILED" | "SESSION_EXPIRED" | "FORBIDDEN" | "INVALID_MESSAGE" | "VALIDATION_ERROR" | "NOT_FOUND" | "RATE_LIMITED" | "TASK_FAILED" | "CONNECTION_LOST" | "UNSUPPORTED" | "BUSY" | "STORAGE_UNAVAILABLE" | "INTERNAL";
  message: string;
};

/** How far a task is. */
export type TaskProgress = {
  current: number;
  description: string;
  total: number;
};

/** `TaskState` of the gateway's description. */
export type TaskState = {
  endTime?: Moment;
  error?: TaskError;
  id: RunId;
  progress?: TaskProgress;
  prompt: string;
  startTime: string;
  status: "starting" | "running" | "completed" | "cancelled" | "error";
};

/** `TaskStatus` of the gateway's description. */
export type TaskStatus = {
  error?: TaskError;
  /** Tasks that waited and are part of this one now. */
  mergedTaskIds?: Array<RunId>;
  progress?: TaskProgress;
  prompt?: Asked;
  status: "starting" | "running" | "completed" | "cancelled" | "error";
  taskId: RunId;
  tokenUsage?: TokenUsage;
  userMessageId?: MessageId;
};

/** `Title` of the gateway's description. */
export type Title = {
  title: string;
};

/** Tokens used. */
export type TokenUsage = {
  contextLeftPercent?: number;
  cost?: number;
  input: number;
  output: number;
  total: number;
};

/** One use of a tool. */
export type ToolState = {
  input?: unknown;
  kind: string;
  name: string;
  output?: unknown;
  status: "pending" | "running" | "completed" | "failed" | "denied" | "skipped" | "cancelled";
  title: string;
  toolCallId: string;
};

/** `ToolUpdate` of the gateway's description. */
export type ToolUpdate = ToolState & {
  taskId: RunId;
};

/** `UpdateSettings` of the gateway's description. */
export type UpdateSettings = {
  settings: SettingsToChange;
};

/** `Updates` of the gateway's description. */
export type Updates = {
  settings: ChangedSettings;
} | {
  tools: Array<string>;
};

/** `UserId` of the gateway's description. */
export type UserId = string;

/** `Utterance` of the gateway's description. */
export type Utterance = {
  content: string;
  format: string;
  id: MessageId;
  metadata?: Suggestion;
  role: "user" | "assistant" | "system";
  taskId?: RunId;
};

/** `Withdraw` of the gateway's description. */
export type Withdraw = {
  taskId: RunId;
};
