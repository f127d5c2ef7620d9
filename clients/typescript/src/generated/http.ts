// Made by scripts/generate.mjs from the gateway's OpenAPI document. Do not edit.

/** Which program this is. */
export type About = {
  /** Its name. */
  name: string;
  /** The version of the database's schema. */
  schemaVersion: number;
  /** Its version. */
  version: string;
};

/** The password of somebody who was invited. */
export type AcceptRequest = {
  password: string;
  /** What stands behind `#t=` in the invite link. */
  token: string;
};

/** An account, as administrators see it. */
export type AccountBody = {
  createdAt: string;
  disabled: boolean;
  id: string;
  /** Has not accepted the invite yet. */
  invited: boolean;
  role: string;
  username: string;
};

/** Accounts by name. */
export type AccountsBody = {
  /** What to ask for next as `after`; absent on the last page. */
  next?: string | null;
  users: Array<AccountBody>;
};

/** Something that was done. */
export type ActBody = {
  /** What. */
  action: string;
  /** Who: a user's name as it was then, `(operator)` or `(gateway)`. */
  actor: string;
  /** From where, if over the network. */
  address?: string | null;
  at: string;
  /** Later acts have larger ones. */
  id: number;
  /** To whom or what: an id or a name. */
  target: string;
};

/** What was done, the newest first. */
export type ActsBody = {
  acts: Array<ActBody>;
  /** What to ask for next as `before`; absent on the last page. */
  next?: number | null;
};

/** One agent. */
export type AgentBody = {
  capabilities: Array<string>;
  name: string;
};

/** The agents that a session can talk to. */
export type AgentsBody = {
  agents: Array<AgentBody>;
  /** The one of a session for which none is named. */
  defaultAgent: string;
};

/** A session, without anything that is said in it. */
export type AnySessionBody = {
  agent: string;
  /** Sockets and streams of this node that are in it now. */
  connections: number;
  createdAt: string;
  id: string;
  messageCount: number;
  owner: OwnerBody;
  /** `running`, `idle` or `archived`. */
  status: string;
  updatedAt: string;
};

/** Everybody's sessions, the newest change first. */
export type AnySessionsBody = {
  /** What to ask for next as `before`; absent on the last page. */
  next?: string | null;
  sessions: Array<AnySessionBody>;
};

/** A file of a session. */
export type AttachmentBody = {
  createdAt: string;
  id: string;
  /** As it was called by whoever brought it; for display only. */
  name: string;
  sha256: string;
  /** In bytes. */
  size: number;
  /** By its content. */
  type: string;
};

/** The files of a session, the oldest first. */
export type AttachmentsBody = {
  attachments: Array<AttachmentBody>;
};

/** What to change about a session. */
export type ChangeRequest = {
  archived?: boolean | null;
  /** `open` or `exclusive`. */
  control?: string | null;
  title?: string | null;
};

/** What to change about an account. */
export type Changes = {
  /** True shuts the user out at once, on every device. */
  disabled?: boolean | null;
  role?: string | null;
};

/** An agent that is configured. */
export type ConfiguredAgentBody = {
  capabilities: Array<string>;
  /** How many of those ended without being told to. */
  crashes: number;
  /** Whether sessions can talk to it. */
  enabled: boolean;
  /** What was wrong last. */
  lastError?: string | null;
  lastErrorAt?: string | null;
  /** What the last one that ended wrote to its standard error. */
  lastWords: Array<string>;
  /** How many of it run. */
  live: number;
  name: string;
  /** What it said that made no sense; dropped. */
  oddLines: number;
  /** What it speaks. */
  protocol: string;
  /** Sessions with it that are awake on this node. */
  sessions: number;
  /** How many were started since the gateway was. */
  starts: number;
  /** What it said about conversations that were not its session's; dropped. */
  strays: number;
};

/** All agents that are configured. */
export type ConfiguredAgentsBody = {
  agents: Array<ConfiguredAgentBody>;
};

/** A connection, without anything of what is said over it. */
export type ConnectionBody = {
  address: string;
  id: string;
  sessionId: string;
  since: string;
  userId: string;
  username: string;
};

/** Everybody who is connected to this node, those who came first before the others. */
export type ConnectionsBody = {
  connections: Array<ConnectionBody>;
  /** What to ask for next as `after`; absent on the last page. */
  next?: string | null;
};

/** A session to be made. */
export type CreateRequest = {
  agent?: string | null;
  title?: string | null;
};

/** An account that was made. */
export type CreatedBody = {
  invite?: InviteBody | null;
  user: AccountBody;
};

/** What somebody was granted. */
export type GrantBody = {
  createdAt: string;
  /** `viewer` or `editor`. */
  role: string;
  userId: string;
  username: string;
};

/** What to grant. */
export type GrantRequest = {
  /** `viewer` looks on; `editor` also prompts, answers, cancels and changes settings. */
  role: string;
};

/** Everybody who was granted something in a session. */
export type GrantsBody = {
  grants: Array<GrantBody>;
};

/** The answer of a probe. */
export type Health = {
  /** The same for each component. */
  components?: Record<string, string>;
  /** `ok`, `draining` or `failing`. */
  status: string;
};

/** A limit that refused something. */
export type HitBody = {
  name: string;
  refused: number;
};

/** A link with which somebody sets a password. */
export type InviteBody = {
  /** When it stops working. */
  expiresAt: string;
  /** To be given to that person and nobody else. */
  url: string;
};

/** One limit. */
export type LimitBody = {
  /** Whether it can be changed here. */
  adjustable: boolean;
  /** What the configuration says. */
  configured: number;
  name: string;
  /** How often it refused something since the gateway started. */
  refused: number;
  /** What is allowed at most, now. */
  value: number;
};

/** Which limits to change. */
export type LimitChanges = {
  /** Login attempts of one address in any 60 seconds, and as many password changes. */
  loginsPerMinute?: number | null;
  /** Messages to one session in any 60 seconds. */
  messagesPerMinute?: number | null;
  /** Requests for the state of one session in any 60 seconds. */
  stateRequestsPerMinute?: number | null;
};

/** The limits in force. */
export type LimitsBody = {
  limits: Array<LimitBody>;
  /** Where and for how long a change holds. */
  scope: string;
};

/** A token and whose it is. */
export type LoggedInBody = {
  /** When it ends. */
  expiresAt: string;
  /** The access token, for `Authorization: Bearer`. */
  token: string;
  user: UserBody;
};

/** One live login. */
export type LoginBody = {
  address?: string | null;
  createdAt: string;
  /** Is it the one that asks? */
  current: boolean;
  expiresAt: string;
  id: string;
  /** `browser` or `token`. */
  kind: string;
  lastUsedAt: string;
  userAgent?: string | null;
};

/** A name and a password. */
export type LoginRequest = {
  password: string;
  /** The one own session that the token shall be good for. */
  sessionId?: string | null;
  username: string;
};

/** The live logins of an account. */
export type LoginsBody = {
  logins: Array<LoginBody>;
};

/** Who acts, by which login. */
export type MeBody = {
  login: MyLogin;
  user: UserBody;
};

/** The login behind a token. */
export type MyLogin = {
  id: string;
  /** The one session that the token is good for. */
  sessionId?: string | null;
  /** When the token ends. */
  tokenExpiresAt: string;
};

/** An account to be made. */
export type NewAccount = {
  /** Without one, the answer has an invite link. */
  password?: string | null;
  role?: string | null;
  username: string;
};

/** What everybody shall read. */
export type NoticeRequest = {
  /** `info`, `warn` or `error`. */
  level?: string | null;
  message: string;
};

/** How the gateway is doing. */
export type OverviewBody = {
  /** Sessions that are awake on this node. */
  awakeSessions: number;
  /** Sockets and streams of this node. */
  connections: number;
  /** How often each limit of this node refused something, those that did. */
  limitsHit: Array<HitBody>;
  /** Those of them in which a run is under way. */
  runningRuns: number;
  /** Sessions that have not ended. */
  sessions: number;
  /** Since this node started. */
  uptimeSeconds: number;
  /** Accounts. */
  users: number;
  /** The version of the gateway. */
  version: string;
};

/** Whose session it is. */
export type OwnerBody = {
  id: string;
  username: string;
};

/** A change of one's own password. */
export type PasswordRequest = {
  currentPassword: string;
  newPassword: string;
};

/** What a client reads when something went wrong. */
export type Problem = {
  /** The code, the same as on every other door. */
  code: string;
  /** What happened this time, and what to do. */
  detail: string;
  /** More, for programs. */
  details?: Record<string, unknown> | null;
  /** What to quote when asking for help. */
  requestId: string;
  /** The HTTP status again. */
  status: number;
  /** What the code means. */
  title: string;
  /** Where the code is explained. */
  type: string;
};

/** How far it went. */
export type SentBody = {
  /** Sockets of this node that hear it. */
  connections: number;
};

/** A session, as those see it who may. */
export type SessionBody = {
  /** What you may do: `viewer`, `editor` or `owner`. */
  access: string;
  agent: string;
  /** Whose commands it takes: `open` (everybody's who may) or `exclusive` (of the one who took control). */
  control: string;
  createdAt: string;
  epoch: string;
  id: string;
  lastUserMessage?: string | null;
  messageCount: number;
  /** The offset of its last event. */
  offset: number;
  /** How many questions wait for an answer. */
  openQuestions: number;
  /** Whose it is. */
  owner: string;
  /** How many prompts wait for their turn. */
  queuedPrompts: number;
  /** Where the words of a search were found. */
  snippet?: string | null;
  /** `running`, `waiting` (for an answer), `idle` or `archived`. */
  status: string;
  title?: string | null;
  updatedAt: string;
};

/** Sessions, the newest change first. */
export type SessionsBody = {
  /** What to ask for next as `before`; absent on the last page. */
  next?: string | null;
  sessions: Array<SessionBody>;
};

/** The first administrator. */
export type SetupRequest = {
  password: string;
  /** What stands behind `#t=` in the setup link. */
  token: string;
  username: string;
};

/** How a trial went. */
export type TestBody = {
  /** What was seen, line by line. */
  lines: Array<string>;
  /** Does it work? */
  ok: boolean;
  /** How long it took. */
  seconds: number;
};

/** How to try an agent out. */
export type TestRequest = {
  /** Ask it something harmless, too; that may cost something. */
  prompt?: boolean | null;
};

/** A ticket for one socket. */
export type TicketBody = {
  /** When it ends. */
  expiresAt: string;
  /** What to put into `?ticket=`. */
  ticket: string;
};

/** Who somebody is. */
export type UserBody = {
  id: string;
  role: string;
  username: string;
};
