// One seat in one session, which comes back by itself when the line breaks.
import { Backoff } from './backoff.js';
import type { BackoffOptions } from './backoff.js';
import { standing } from './cursor.js';
import type { Cursor } from './cursor.js';
import { Dialer } from './dialer.js';
import type { Transport } from './dialer.js';
import { verdict } from './ending.js';
import type { LineEnd } from './ending.js';
import { Endings } from './endings.js';
import type { Ending } from './endings.js';
import { isEvent } from './envelope.js';
import type { CommandType, Envelope, Reply, SessionEvent } from './envelope.js';
import { Failure } from './failure.js';
import type { FailureCode } from './failure.js';
import type * as Protocol from './generated/protocol.js';
import type { Line, Place } from './line.js';
import { Listeners } from './listeners.js';
import type { Login } from './login.js';
import { Outbox, parcel } from './outbox.js';
import type { SendOptions } from './outbox.js';
import { Pulse } from './pulse.js';
import type { SocketClass } from './socket-line.js';
import { SessionStore } from './store.js';
import { utf8Bytes } from './view.js';

/** How a session is joined. */
export interface JoinOptions {
  /** `state` (default): begin with the state as it is now. `start`: hear everything from the first event on. */
  from?: 'state' | 'start' | Cursor;
  /** Goes on with a store that stands at the cursor in `from`. */
  store?: SessionStore;
  transport?: Transport;
  backoff?: BackoffOptions;
  /** Get a new token when this one has so little time left. */
  renewBeforeMs?: number;
  /** How long a line may take until it is acknowledged. */
  openTimeoutMs?: number;
  /** How long a silent line may leave a question unanswered. */
  patienceMs?: number;
  /** How long to stay away after having been too fast. */
  laterMs?: number;
}

/** `waiting`: for the next try. `ended`: for good, see `ended`. */
export type Status = 'connecting' | 'open' | 'waiting' | 'ended';

/** What a session tells. */
export interface SessionNews {
  /** Every event of the journal, in order and once. */
  event: SessionEvent;
  /** A state stands in the place of what was missed or came before; the store has it. */
  snapshot: Protocol.FullState;
  /** The line. */
  status: Status;
  /** A line was acknowledged. */
  open: Protocol.ConnectionAck;
  /** The line is open, and nothing is heard that should have been by now; or it is again. */
  slow: boolean;
  /** A line was lost, and why. */
  lost: LineEnd;
  /** From an administrator, to everybody. */
  notice: Protocol.Notice;
  /** It will not come back. */
  ended: Failure;
}

/** Fresh tokens that may be refused in a row: then it is not the token. */
const TOKEN_TRIES = 3;
const STABLE_MS = 10_000;
/** Streams are never silent for longer than 15 s. */
const STREAM_QUIET_MS = 30_000;
const FINAL: Record<number, FailureCode> = { 4400: 'INVALID_MESSAGE', 4403: 'FORBIDDEN', 4404: 'NOT_FOUND', 4409: 'NOT_FOUND' };

/** A session that was joined. Make one with `Gateway.join` or `Gateway.open`. */
export class Session {
  /** What a screen shows. */
  readonly store: SessionStore;
  /** Resolves once the store shows the session; fails if it never will. */
  readonly ready: Promise<void>;
  readonly #options: JoinOptions;
  readonly #login: Login;
  readonly #dialer: Dialer;
  readonly #backoff: Backoff;
  readonly #outbox = new Outbox();
  readonly #endings = new Endings();
  readonly #listeners = new Listeners<SessionNews>();
  #line: Line | undefined;
  #ack: Protocol.ConnectionAck | undefined;
  #cursor: Cursor | undefined;
  /** The token that the line lives by. */
  #token = '';
  /** Events are missing: no replay from the start, which would double those that were heard. */
  #isMending = false;
  #status: Status = 'connecting';
  #failure: Failure | undefined;
  #lastError: Failure | undefined;
  #tokensRefused = 0;
  #pulse: Pulse | undefined;
  /** The run of the last prompt. */
  #prompted: string | undefined;
  #wait: ReturnType<typeof setTimeout> | undefined;
  #retryAt: number | undefined;
  #timers = new Set<ReturnType<typeof setTimeout>>();
  #settleReady!: { resolve(): void; reject(failure: Failure): void };
  readonly #hurry = () => this.hurry();

  constructor(login: Login, readonly id: string, Socket: SocketClass | undefined, options: JoinOptions = {}) {
    this.#login = login;
    this.#options = options;
    this.#dialer = new Dialer(login, id, options.transport ?? 'auto', Socket);
    this.#backoff = new Backoff(options.backoff);
    this.store = options.store ?? new SessionStore();
    if (typeof options.from === 'object') this.#cursor = { ...options.from };
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }));
    this.ready.catch(() => {});
    globalThis.addEventListener?.('online', this.#hurry);
    // Not at once: whoever made it can listen first.
    this.#after(0, () => this.#dial());
  }

  /** How the line is. */
  get status(): Status {
    return this.#status;
  }

  /** The kind of line there is, if there is one. */
  get transport(): Line['kind'] | undefined {
    return this.#line?.kind;
  }

  /** How far the journal was read; keep it to come back later with `from`. */
  get cursor(): Cursor | undefined {
    return this.#cursor && { ...this.#cursor };
  }

  /** What the gateway said when the line was opened. */
  get acknowledgement(): Protocol.ConnectionAck | undefined {
    return this.#ack;
  }

  /** When the next try is due, in milliseconds since 1970; nothing unless it waits for one. */
  get retryAt(): number | undefined {
    return this.#retryAt;
  }

  /** Why it ended, if it has. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** Calls back until the returned function is called. */
  on<K extends keyof SessionNews>(name: K, listener: (told: SessionNews[K]) => void): () => void {
    return this.#listeners.on(name, listener);
  }

  /**
   * Sends a command and resolves with its answer. If the line breaks meanwhile it is sent again on the
   * next one; what changes something carries a key, and takes effect once. Twelve hours after it was first
   * sent it is not sent again, as the gateway may have forgotten the key: then it fails.
   */
  send<T extends CommandType>(type: T, payload: Protocol.ClientPayloads[T], options: SendOptions = {}): Promise<Reply<T>> {
    if (this.#failure) return Promise.reject(this.#failure);
    const made = parcel(this.id, type, payload, options);
    const most = this.#ack?.limits.messageBytes ?? Infinity;
    const bytes = utf8Bytes(made.text);
    if (bytes > most) {
      const message = `${type} has ${bytes} bytes; the gateway takes ${most}.`;
      return Promise.reject(new Failure('VALIDATION_ERROR', message, 0, { limit: 'messageBytes', max: most, actual: bytes }));
    }
    this.#pulse?.expect();
    return this.#outbox.add(made, options);
  }

  /** Asks the agent something. The answer has the run's `taskId`, and `queued` if it has to wait. */
  async prompt(text: string, more: Partial<Omit<Protocol.SubmitPrompt, 'text'>> = {}): Promise<Protocol.Done & { taskId: string }> {
    const done = await this.send('SUBMIT_PROMPT', { mode: 'act', ...more, text });
    this.#prompted = done.taskId ?? undefined;
    return { ...done, taskId: done.taskId ?? '' };
  }

  /** Asks the agent something and waits until it is done. `text` is all that it said. */
  async ask(text: string, more: Partial<Omit<Protocol.SubmitPrompt, 'text'>> = {}): Promise<Ending & { text: string }> {
    const { taskId } = await this.prompt(text, more);
    const ending = await this.end(taskId);
    const said = this.store.view.messages.filter((message) => message.taskId === taskId && message.type === 'assistant');
    return { ...ending, text: said.map(({ content }) => content).join('') };
  }

  /** The end of a run. */
  end(taskId: string): Promise<Ending> {
    return this.#failure ? Promise.reject(this.#failure) : this.#endings.of(taskId, this.store.view);
  }

  /** Cancels a run; without its id, the one that the store shows as under way, or that was asked for last. */
  cancel(taskId = this.#underWay()): Promise<Protocol.Done> {
    // Without an id, a second try after a lost line might hit the next run.
    return this.send('CANCEL_TASK', taskId === undefined ? {} : { taskId });
  }

  /** The answer to a prompt may be here before its first event is. */
  #underWay(): string | undefined {
    const { currentTask } = this.store.view;
    return currentTask?.status === 'running' ? currentTask.id : (this.#prompted ?? currentTask?.id);
  }

  /** Answers a question. */
  answer(questionId: string, said: Protocol.SaidOnce & { remember?: boolean; reason?: string }): Promise<Protocol.Done> {
    return this.send('ANSWER', { questionId, ...said });
  }

  /** Tries at once instead of waiting on. */
  hurry(): void {
    if (this.#status === 'waiting') this.#dial();
  }

  /** Leaves. What was not answered yet fails; it may have taken effect. */
  close(): void {
    this.#finish(new Failure('CONNECTION_LOST', 'You have left the session.', 1000));
  }

  #dial(): void {
    if (this.#failure) return;
    this.#clear();
    this.#set('connecting');
    this.#token = this.#login.token;
    const line = this.#dialer.dial(this.#place(), {
      heard: (envelope) => isMine() && this.#hear(envelope),
      alive: () => isMine() && this.#pulse?.touch(),
      ended: (end) => isMine() && this.#lost(end),
    });
    const isMine = () => this.#line === line;
    this.#line = line;
    this.#after(this.#options.openTimeoutMs ?? 15_000, () => {
      if (isMine() && this.#status === 'connecting') this.#giveUp('not acknowledged in time');
    });
  }

  #place(): Place {
    if (this.#cursor) return { after: String(this.#cursor.offset), epoch: this.#cursor.epoch };
    // A place in a counting that never was: whoever brings it gets the state.
    return this.#options.from === 'start' && !this.#isMending ? { after: '0' } : { after: '0', epoch: 'none' };
  }

  #hear(envelope: Envelope): void {
    if (isEvent(envelope)) return this.#event(envelope);
    switch (envelope.type) {
      case 'CONNECTION_ACK':
        return this.#opened(envelope);
      case 'FULL_STATE':
        return envelope.messageId === undefined ? this.#snapshot(envelope) : this.#outbox.answered(envelope.messageId, envelope.payload);
      case 'ERROR_MESSAGE': {
        const failure = Failure.told(envelope.payload);
        if (!envelope.payload.recoverable) this.#lastError = failure;
        return this.#outbox.refused(envelope.messageId, failure, () => this.#backoff.next());
      }
      case 'TOKEN_EXPIRING': {
        const leftMs = Date.parse(envelope.payload.expiresAt) - Date.parse(envelope.timestamp);
        return this.#after(Math.max(0, leftMs - (this.#options.renewBeforeMs ?? 30_000)), () => void this.#renew());
      }
      case 'NOTICE':
        return this.#listeners.tell('notice', envelope.payload);
      case 'PRESENCE':
      case 'CONTROL_UPDATE':
        return this.store.apply(envelope);
      default:
        this.#outbox.answered(envelope.messageId, envelope.payload);
    }
  }

  #opened(envelope: Envelope<'CONNECTION_ACK'>): void {
    const { payload } = envelope;
    const line = this.#line;
    if (!line) return;
    this.#ack = payload;
    this.#dialer.worked(line.kind);
    if (payload.resume === 'replayed' && !this.#cursor) {
      this.#cursor = { epoch: payload.epoch, offset: 0 };
      this.store.clear(payload.epoch);
    }
    this.store.apply(envelope);
    this.#watch(line, payload.heartbeatSeconds * 1000);
    this.#after(STABLE_MS, () => this.#fine());
    this.#set('open');
    // After the state that is to come: an answer that is an event must not be among what it stands for.
    if (payload.resume !== 'snapshot') this.#outbox.attach((made) => line.send(made));
    this.#listeners.tell('open', payload);
    this.#lookWhetherReady();
  }

  #lookWhetherReady(): void {
    if (!this.#ack || this.#cursor?.epoch !== this.#ack.epoch || this.#cursor.offset < this.#ack.offset) return;
    this.#settleReady.resolve();
    this.#outbox.caughtUp();
  }

  #watch(line: Line, quietMs: number): void {
    const ask = () => {
      if (line.kind === 'socket') line.send(parcel(this.id, 'HEARTBEAT', {}));
    };
    this.#pulse = new Pulse({
      quietMs: line.kind === 'stream' ? STREAM_QUIET_MS : quietMs,
      patienceMs: this.#options.patienceMs ?? 60_000,
      ask,
      slow: (is) => this.#listeners.tell('slow', is),
      dead: () => this.#giveUp('no sign of life'),
    });
  }

  #event(event: SessionEvent): void {
    // Nothing can be folded before the state that it follows.
    if (!this.#cursor) return this.#giveUp('an event before the state');
    switch (standing(this.#cursor, event)) {
      case 'known':
        return;
      case 'gap':
        // Never seen; should it happen, the state has what is missing.
        this.#cursor = undefined;
        this.#isMending = true;
        return this.#giveUp('an event is missing');
      default:
    }
    this.#fine();
    this.store.apply(event);
    this.#cursor = { epoch: this.#cursor.epoch, offset: event.offset };
    this.#endings.hear(event);
    if (event.type === 'TASK_STATUS_UPDATE' && event.messageId !== undefined) {
      this.#outbox.answered(event.messageId, { taskId: event.payload.taskId });
    }
    this.#listeners.tell('event', event);
    this.#lookWhetherReady();
  }

  #snapshot(envelope: Envelope<'FULL_STATE'>): void {
    const { epoch, offset } = envelope.payload;
    this.store.apply(envelope);
    this.#cursor = { epoch, offset };
    this.#isMending = false;
    this.#endings.look(this.store.view);
    this.#listeners.tell('snapshot', envelope.payload);
    this.#lookWhetherReady();
    // All again: the event that answers a prompt may be among those that were passed over.
    const line = this.#line;
    if (line) this.#outbox.attach((made) => line.send(made));
  }

  /** The line is good for something: the next trouble is a new one. */
  #fine(): void {
    this.#tokensRefused = 0;
    this.#backoff.reset();
  }

  #giveUp(reason: string): void {
    const line = this.#line;
    this.#line = undefined;
    line?.drop();
    this.#lost({ code: 1006, reason }, line);
  }

  #lost(end: LineEnd, line = this.#line): void {
    const wasOpen = this.#status === 'open';
    this.#clear();
    this.#listeners.tell('lost', end);
    if (this.#failure) return;
    const neverThere = !wasOpen && end.code < 4000 && end.code !== 1012;
    if (neverThere && line && this.#dialer.failed(line.kind)) return this.#dial();
    switch (verdict(end)) {
      case 'end':
        return this.#finish(new Failure(FINAL[end.code] ?? 'CONNECTION_LOST', this.#lastError?.message ?? end.reason, end.code));
      case 'new-token':
        return void this.#renewAfterRefusal(this.#token);
      case 'as-told':
        return this.#later(end.retryAfterMs ?? this.#backoff.next());
      case 'later':
        return this.#later((this.#options.laterMs ?? 30_000) * (1 + Math.random()));
      case 'retry-without':
        this.#outbox.fail(new Failure('VALIDATION_ERROR', `The gateway closed the line: ${end.reason}`, end.code), 'sent');
        return this.#later(this.#backoff.next());
      default:
        return this.#later(this.#backoff.next());
    }
  }

  /** In time, so that the line lives on. */
  async #renew(): Promise<void> {
    const line = this.#line;
    if (!line || this.#status !== 'open') return;
    try {
      const token = await this.#login.renew(this.#token);
      if (this.#line !== line) return;
      if (line.kind === 'stream') return this.#dial();
      this.#token = token;
      line.send(parcel(this.id, 'AUTH_REFRESH', { token }));
    } catch {
      // Not reachable: once more while there is time. Over: the gateway closes the line, and says why.
      if (!this.#login.over && this.#line === line) this.#after(this.#backoff.next(), () => void this.#renew());
    }
  }

  /** A refused token is not tried again: there is a new one, or this is the end. */
  async #renewAfterRefusal(refused: string): Promise<void> {
    this.#set('waiting');
    this.#tokensRefused += 1;
    const why = this.#lastError ?? new Failure('AUTH_FAILED', 'The token is not accepted.', 4401);
    if (this.#tokensRefused > TOKEN_TRIES) return this.#finish(why);
    try {
      await this.#login.renew(refused);
    } catch {
      const { over } = this.#login;
      // What the gateway said when it closed the line says more than that there is nothing to refresh.
      if (over) return this.#finish(over.code === 'OTHER_USER' ? over : (this.#lastError ?? over));
      this.#tokensRefused -= 1;
      return this.#after(this.#backoff.next(), () => void this.#renewAfterRefusal(refused));
    }
    if (this.#failure) return;
    return this.#tokensRefused > 1 ? this.#later(this.#backoff.next()) : this.#dial();
  }

  #later(waitMs: number): void {
    this.#retryAt = Date.now() + waitMs;
    this.#set('waiting');
    this.#wait = setTimeout(() => this.#dial(), waitMs);
  }

  #finish(failure: Failure): void {
    if (this.#failure) return;
    this.#failure = failure;
    this.#clear();
    globalThis.removeEventListener?.('online', this.#hurry);
    this.#set('ended');
    this.#outbox.fail(failure, 'all');
    this.#endings.fail(failure);
    this.#settleReady.reject(failure);
    this.#listeners.tell('ended', failure);
  }

  /** Lets go of the line and of everything that was to happen on it. */
  #clear(): void {
    clearTimeout(this.#wait);
    this.#retryAt = undefined;
    this.#timers.forEach(clearTimeout);
    this.#timers.clear();
    this.#pulse?.stop();
    this.#pulse = undefined;
    this.#outbox.detach();
    const line = this.#line;
    this.#line = undefined;
    line?.drop();
  }

  #after(waitMs: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, waitMs);
    this.#timers.add(timer);
  }

  #set(status: Status): void {
    if (status === this.#status) return;
    this.#status = status;
    this.#listeners.tell('status', status);
  }
}
