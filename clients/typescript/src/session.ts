// Session: one membership in one session, which reconnects by itself.
import { Backoff } from './backoff.js';
import type { BackoffOptions } from './backoff.js';
import { closeAction } from './close.js';
import type { CloseInfo } from './close.js';
import { encodeCommand } from './command.js';
import type { SendOptions } from './command.js';
import type { Connection, ResumeQuery } from './connection.js';
import { eventOrder } from './cursor.js';
import type { Cursor } from './cursor.js';
import { Dialer } from './dialer.js';
import type { Transport } from './dialer.js';
import { isEvent } from './envelope.js';
import type { CommandType, Envelope, Reply, SessionEvent } from './envelope.js';
import { Failure } from './failure.js';
import type { FailureCode } from './failure.js';
import type * as Protocol from './generated/protocol.js';
import { Keepalive } from './keepalive.js';
import { Listeners } from './listeners.js';
import type { Login } from './login.js';
import { Outbox } from './outbox.js';
import { RunWaiters } from './run-waiters.js';
import type { RunEnd } from './run-waiters.js';
import { SessionStore } from './session-store.js';
import { utf8Length } from './utf8.js';
import type { SocketClass } from './websocket-connection.js';

/** How to join a session. */
export interface JoinOptions {
  /**
   * `state` (default): begin with the current state. `start`: receive every event from the first on. A cursor:
   * resume there.
   */
  from?: 'state' | 'start' | Cursor;
  /** A store that is already at the cursor in `from`. */
  store?: SessionStore;
  transport?: Transport;
  backoff?: BackoffOptions;
  /** Renew the token when it expires in less than this. */
  renewBeforeMs?: number;
  /** How long a connection may take to be acknowledged. */
  openTimeoutMs?: number;
  /** How long a quiet connection may leave a ping unanswered. */
  keepaliveTimeoutMs?: number;
  /** The shortest pause after a close for flooding (4429). */
  throttleWaitMs?: number;
}

/** `waiting`: for the next attempt. `ended`: for good, see `failure`. */
export type Status = 'connecting' | 'open' | 'waiting' | 'ended';

/** Payloads of the events of a session, by event name. */
export interface SessionEventMap {
  /** Each event of the journal, in order, once. */
  event: SessionEvent;
  /** A state replaced the events that were missed or came before. The store has applied it. */
  snapshot: Protocol.FullState;
  /** The connection status changed. */
  status: Status;
  /** A connection was acknowledged. */
  open: Protocol.ConnectionAck;
  /** True: an answer is overdue on an open connection. False: it arrived. */
  slow: boolean;
  /** A connection ended. */
  lost: CloseInfo;
  /** A notice from an administrator. */
  notice: Protocol.Notice;
  /** The session will not reconnect. */
  ended: Failure;
}

/** New tokens that may be refused in a row before the session ends: by then the token is not the cause. */
const MAX_REFUSED_TOKENS = 3;
const STABLE_AFTER_MS = 10_000;
/** The gateway sends something on a stream at least every 15 s. */
const STREAM_IDLE_MS = 30_000;
const FINAL_CLOSE_CODES: Record<number, FailureCode> = { 4400: 'INVALID_MESSAGE', 4403: 'FORBIDDEN', 4404: 'NOT_FOUND', 4409: 'NOT_FOUND' };

/** A joined session. Create one with `Account.join` or `Account.open`. */
export class Session {
  /** The state to render. */
  readonly store: SessionStore;
  /** Resolves once the store holds the session; rejects if the session ends before. */
  readonly ready: Promise<void>;
  readonly #options: JoinOptions;
  readonly #login: Login;
  readonly #dialer: Dialer;
  readonly #backoff: Backoff;
  readonly #outbox = new Outbox();
  readonly #runWaiters = new RunWaiters();
  readonly #listeners = new Listeners<SessionEventMap>();
  #connection: Connection | undefined;
  #ack: Protocol.ConnectionAck | undefined;
  #cursor: Cursor | undefined;
  /** The token of the open connection. */
  #token = '';
  /** Events are missing. A replay from the start would repeat those already emitted, so ask for the state. */
  #needsState = false;
  #status: Status = 'connecting';
  #failure: Failure | undefined;
  #lastError: Failure | undefined;
  #tokensRefused = 0;
  #keepalive: Keepalive | undefined;
  /** The run that the last prompt started. */
  #lastPromptedRun: string | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #retryAt: number | undefined;
  #timers = new Set<ReturnType<typeof setTimeout>>();
  #settleReady!: { resolve(): void; reject(failure: Failure): void };
  readonly #onOnline = () => this.reconnectNow();

  constructor(login: Login, readonly id: string, Socket: SocketClass | undefined, options: JoinOptions = {}) {
    this.#login = login;
    this.#options = options;
    this.#dialer = new Dialer(login, id, options.transport ?? 'auto', Socket);
    this.#backoff = new Backoff(options.backoff);
    this.store = options.store ?? new SessionStore();
    if (typeof options.from === 'object') this.#cursor = { ...options.from };
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }));
    this.ready.catch(() => {});
    globalThis.addEventListener?.('online', this.#onOnline);
    // Deferred so that the creator can register listeners first.
    this.#schedule(0, () => this.#connect());
  }

  /** The connection status. */
  get status(): Status {
    return this.#status;
  }

  /** The transport in use, if connected. */
  get transport(): Connection['kind'] | undefined {
    return this.#connection?.kind;
  }

  /** How far the journal was read; pass it as `from` to resume later. */
  get cursor(): Cursor | undefined {
    return this.#cursor && { ...this.#cursor };
  }

  /** The gateway's acknowledgement of the latest connection. */
  get acknowledgement(): Protocol.ConnectionAck | undefined {
    return this.#ack;
  }

  /** When the next attempt is due, in milliseconds since 1970; undefined unless waiting. */
  get retryAt(): number | undefined {
    return this.#retryAt;
  }

  /** Why the session ended, if it has. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Registers a listener; the returned function removes it. */
  on<K extends keyof SessionEventMap>(name: K, listener: (payload: SessionEventMap[K]) => void): () => void {
    return this.#listeners.on(name, listener);
  }

  /**
   * Sends a command and resolves with its answer. It is resent if the connection breaks; commands that change
   * something carry an idempotency key and take effect once. A command first sent more than twelve hours ago
   * is not resent but fails, because the gateway may have forgotten its key.
   */
  send<T extends CommandType>(type: T, payload: Protocol.ClientPayloads[T], options: SendOptions = {}): Promise<Reply<T>> {
    if (this.#failure) return Promise.reject(this.#failure);
    const command = encodeCommand(this.id, type, payload, options);
    const limit = this.#ack?.limits.messageBytes ?? Infinity;
    const bytes = utf8Length(command.text);
    if (bytes > limit) {
      const message = `${type} has ${bytes} bytes; the gateway takes ${limit}.`;
      return Promise.reject(new Failure('VALIDATION_ERROR', message, 0, { limit: 'messageBytes', max: limit, actual: bytes }));
    }
    this.#keepalive?.expectAnswer();
    return this.#outbox.add(command, options);
  }

  /** Sends a prompt. The answer has the run's `taskId`, and `queued` if other runs come first. */
  async prompt(text: string, more: Partial<Omit<Protocol.SubmitPrompt, 'text'>> = {}): Promise<Protocol.Done & { taskId: string }> {
    const done = await this.send('SUBMIT_PROMPT', { mode: 'act', ...more, text });
    this.#lastPromptedRun = done.taskId ?? undefined;
    return { ...done, taskId: done.taskId ?? '' };
  }

  /** Sends a prompt and waits for the end of its run. `text` is the whole answer. */
  async ask(text: string, more: Partial<Omit<Protocol.SubmitPrompt, 'text'>> = {}): Promise<RunEnd & { text: string }> {
    const { taskId } = await this.prompt(text, more);
    const end = await this.end(taskId);
    const messages = this.store.view.messages.filter((message) => message.taskId === taskId && message.type === 'assistant');
    return { ...end, text: messages.map(({ content }) => content).join('') };
  }

  /** Waits for the end of a run. */
  end(taskId: string): Promise<RunEnd> {
    return this.#failure ? Promise.reject(this.#failure) : this.#runWaiters.wait(taskId, this.store.view);
  }

  /** Cancels a run, by default the one that is running or was started last. */
  cancel(taskId = this.#currentRun()): Promise<Protocol.Done> {
    // Names the run: without an id, a resend after a reconnect could cancel the next run.
    return this.send('CANCEL_TASK', taskId === undefined ? {} : { taskId });
  }

  /** The answer to a prompt can arrive before the first event of its run. */
  #currentRun(): string | undefined {
    const { currentTask } = this.store.view;
    return currentTask?.status === 'running' ? currentTask.id : (this.#lastPromptedRun ?? currentTask?.id);
  }

  /** Answers a question. */
  answer(questionId: string, answer: Protocol.SaidOnce & { remember?: boolean; reason?: string }): Promise<Protocol.Done> {
    return this.send('ANSWER', { questionId, ...answer });
  }

  /** Reconnects at once instead of waiting for the next attempt. */
  reconnectNow(): void {
    if (this.#status === 'waiting') this.#connect();
  }

  /** Leaves the session. Unanswered commands are rejected; they may still take effect. */
  close(): void {
    this.#endWith(new Failure('CONNECTION_LOST', 'You have left the session.', 1000));
  }

  #connect(): void {
    if (this.#failure) return;
    this.#reset();
    this.#setStatus('connecting');
    this.#token = this.#login.token;
    const connection = this.#dialer.dial(this.#resumeQuery(), {
      received: (envelope) => isCurrent() && this.#receive(envelope),
      alive: () => isCurrent() && this.#keepalive?.received(),
      closed: (close) => isCurrent() && this.#connectionClosed(close),
    });
    const isCurrent = () => this.#connection === connection;
    this.#connection = connection;
    this.#schedule(this.#options.openTimeoutMs ?? 15_000, () => {
      if (isCurrent() && this.#status === 'connecting') this.#dropConnection('not acknowledged in time');
    });
  }

  #resumeQuery(): ResumeQuery {
    if (this.#cursor) return { after: String(this.#cursor.offset), epoch: this.#cursor.epoch };
    // No epoch is named `none`, so the gateway answers with the state.
    return this.#options.from === 'start' && !this.#needsState ? { after: '0' } : { after: '0', epoch: 'none' };
  }

  #receive(envelope: Envelope): void {
    if (isEvent(envelope)) return this.#receiveEvent(envelope);
    switch (envelope.type) {
      case 'CONNECTION_ACK':
        return this.#acknowledged(envelope);
      case 'FULL_STATE':
        return envelope.messageId === undefined ? this.#receiveState(envelope) : this.#outbox.resolve(envelope.messageId, envelope.payload);
      case 'ERROR_MESSAGE': {
        const failure = Failure.fromProtocol(envelope.payload);
        if (!envelope.payload.recoverable) this.#lastError = failure;
        return this.#outbox.handleRefusal(envelope.messageId, failure, () => this.#backoff.next());
      }
      case 'TOKEN_EXPIRING': {
        const leftMs = Date.parse(envelope.payload.expiresAt) - Date.parse(envelope.timestamp);
        return this.#schedule(Math.max(0, leftMs - (this.#options.renewBeforeMs ?? 30_000)), () => void this.#renew());
      }
      case 'NOTICE':
        return this.#listeners.emit('notice', envelope.payload);
      case 'PRESENCE':
      case 'CONTROL_UPDATE':
        return this.store.apply(envelope);
      default:
        this.#outbox.resolve(envelope.messageId, envelope.payload);
    }
  }

  #acknowledged(envelope: Envelope<'CONNECTION_ACK'>): void {
    const { payload } = envelope;
    const connection = this.#connection;
    if (!connection) return;
    this.#ack = payload;
    this.#dialer.recordOpened(connection.kind);
    if (payload.resume === 'replayed' && !this.#cursor) {
      this.#cursor = { epoch: payload.epoch, offset: 0 };
      this.store.clear(payload.epoch);
    }
    this.store.apply(envelope);
    this.#startKeepalive(connection, payload.heartbeatSeconds * 1000);
    this.#schedule(STABLE_AFTER_MS, () => this.#markStable());
    this.#setStatus('open');
    // With a snapshot, wait for the state: otherwise an event that answers a command could be among those it
    // replaces.
    if (payload.resume !== 'snapshot') this.#outbox.attach((command) => connection.send(command));
    this.#listeners.emit('open', payload);
    this.#checkReady();
  }

  #checkReady(): void {
    if (!this.#ack || this.#cursor?.epoch !== this.#ack.epoch || this.#cursor.offset < this.#ack.offset) return;
    this.#settleReady.resolve();
    this.#outbox.markCaughtUp();
  }

  #startKeepalive(connection: Connection, idleMs: number): void {
    const ping = () => {
      if (connection.kind === 'socket') connection.send(encodeCommand(this.id, 'HEARTBEAT', {}));
    };
    this.#keepalive = new Keepalive({
      idleMs: connection.kind === 'stream' ? STREAM_IDLE_MS : idleMs,
      timeoutMs: this.#options.keepaliveTimeoutMs ?? 60_000,
      ping,
      onSlow: (isSlow) => this.#listeners.emit('slow', isSlow),
      onDead: () => this.#dropConnection('no sign of life'),
    });
  }

  #receiveEvent(event: SessionEvent): void {
    // An event can only be folded onto the state before it.
    if (!this.#cursor) return this.#dropConnection('an event before the state');
    switch (eventOrder(this.#cursor, event)) {
      case 'duplicate':
        return;
      case 'gap':
        // Not expected. The state brings what is missing.
        this.#cursor = undefined;
        this.#needsState = true;
        return this.#dropConnection('an event is missing');
      default:
    }
    this.#markStable();
    this.store.apply(event);
    this.#cursor = { epoch: this.#cursor.epoch, offset: event.offset };
    this.#runWaiters.observe(event);
    if (event.type === 'TASK_STATUS_UPDATE' && event.messageId !== undefined) {
      this.#outbox.resolve(event.messageId, { taskId: event.payload.taskId });
    }
    this.#listeners.emit('event', event);
    this.#checkReady();
  }

  #receiveState(envelope: Envelope<'FULL_STATE'>): void {
    const { epoch, offset } = envelope.payload;
    this.store.apply(envelope);
    this.#cursor = { epoch, offset };
    this.#needsState = false;
    this.#runWaiters.checkState(this.store.view);
    this.#listeners.emit('snapshot', envelope.payload);
    this.#checkReady();
    // Resend everything: the event that answers a prompt may be among those that the state replaced.
    const connection = this.#connection;
    if (connection) this.#outbox.attach((command) => connection.send(command));
  }

  /** The connection works: later failures start a new count. */
  #markStable(): void {
    this.#tokensRefused = 0;
    this.#backoff.reset();
  }

  #dropConnection(reason: string): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.drop();
    this.#connectionClosed({ code: 1006, reason }, connection);
  }

  #connectionClosed(close: CloseInfo, connection = this.#connection): void {
    const wasOpen = this.#status === 'open';
    this.#reset();
    this.#listeners.emit('lost', close);
    if (this.#failure) return;
    const neverOpened = !wasOpen && close.code < 4000 && close.code !== 1012;
    if (neverOpened && connection && this.#dialer.recordFailed(connection.kind)) return this.#connect();
    switch (closeAction(close)) {
      case 'end':
        return this.#endWith(new Failure(FINAL_CLOSE_CODES[close.code] ?? 'CONNECTION_LOST', this.#lastError?.message ?? close.reason, close.code));
      case 'renew-token':
        return void this.#renewAfterRefusal(this.#token);
      case 'retry-after':
        return this.#retryIn(close.retryAfterMs ?? this.#backoff.next());
      case 'slow-down':
        return this.#retryIn((this.#options.throttleWaitMs ?? 30_000) * (1 + Math.random()));
      case 'discard-sent':
        this.#outbox.rejectAll(new Failure('VALIDATION_ERROR', `The gateway closed the line: ${close.reason}`, close.code), 'sent');
        return this.#retryIn(this.#backoff.next());
      default:
        return this.#retryIn(this.#backoff.next());
    }
  }

  /** Renews the token before it expires, so that the connection stays open. */
  async #renew(): Promise<void> {
    const connection = this.#connection;
    if (!connection || this.#status !== 'open') return;
    try {
      const token = await this.#login.renew(this.#token);
      if (this.#connection !== connection) return;
      if (connection.kind === 'stream') return this.#connect();
      this.#token = token;
      connection.send(encodeCommand(this.id, 'AUTH_REFRESH', { token }));
    } catch {
      // Unreachable: try again while there is time. Login ended: the gateway closes the connection and says
      // why.
      if (!this.#login.ended && this.#connection === connection) this.#schedule(this.#backoff.next(), () => void this.#renew());
    }
  }

  /** Never reuses a refused token: gets a new one or ends the session. */
  async #renewAfterRefusal(refused: string): Promise<void> {
    this.#setStatus('waiting');
    this.#tokensRefused += 1;
    const failure = this.#lastError ?? new Failure('AUTH_FAILED', 'The token is not accepted.', 4401);
    if (this.#tokensRefused > MAX_REFUSED_TOKENS) return this.#endWith(failure);
    try {
      await this.#login.renew(refused);
    } catch {
      const { ended } = this.#login;
      // The gateway's own reason is more precise than a failed refresh.
      if (ended) return this.#endWith(ended.code === 'OTHER_USER' ? ended : (this.#lastError ?? ended));
      this.#tokensRefused -= 1;
      return this.#schedule(this.#backoff.next(), () => void this.#renewAfterRefusal(refused));
    }
    if (this.#failure) return;
    return this.#tokensRefused > 1 ? this.#retryIn(this.#backoff.next()) : this.#connect();
  }

  #retryIn(waitMs: number): void {
    this.#retryAt = Date.now() + waitMs;
    this.#setStatus('waiting');
    this.#retryTimer = setTimeout(() => this.#connect(), waitMs);
  }

  #endWith(failure: Failure): void {
    if (this.#failure) return;
    this.#failure = failure;
    this.#reset();
    globalThis.removeEventListener?.('online', this.#onOnline);
    this.#setStatus('ended');
    this.#outbox.rejectAll(failure, 'all');
    this.#runWaiters.rejectAll(failure);
    this.#settleReady.reject(failure);
    this.#listeners.emit('ended', failure);
  }

  /** Drops the connection and everything scheduled on it. */
  #reset(): void {
    clearTimeout(this.#retryTimer);
    this.#retryAt = undefined;
    this.#timers.forEach(clearTimeout);
    this.#timers.clear();
    this.#keepalive?.stop();
    this.#keepalive = undefined;
    this.#outbox.detach();
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.drop();
  }

  #schedule(waitMs: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, waitMs);
    this.#timers.add(timer);
  }

  #setStatus(status: Status): void {
    if (status === this.#status) return;
    this.#status = status;
    this.#listeners.emit('status', status);
  }
}
