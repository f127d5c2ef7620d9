// Run waiters: promises for the end of a run.
import type { Envelope } from './envelope.js';
import type { Failure } from './failure.js';
import type { TaskError } from './generated/protocol.js';
import type { View } from './view.js';

/** How a run ended. `unknown`: it ended, but the events that would say how were skipped. */
export interface RunEnd {
  taskId: string;
  status: 'completed' | 'cancelled' | 'error' | 'unknown';
  error?: TaskError;
}

interface Waiter {
  resolve(end: RunEnd): void;
  reject(failure: Failure): void;
}

const MAX_REMEMBERED = 256;

/** The most recent ends, and the promises that wait for one. */
export class RunWaiters {
  readonly #recent = new Map<string, RunEnd>();
  readonly #waiters = new Map<string, Waiter[]>();

  /** Resolves when the run has ended. */
  wait(taskId: string, view: View): Promise<RunEnd> {
    const end = this.#recent.get(taskId) ?? endInView(taskId, view);
    if (end) return Promise.resolve(end);
    return new Promise((resolve, reject) => {
      this.#waiters.set(taskId, [...(this.#waiters.get(taskId) ?? []), { resolve, reject }]);
    });
  }

  /** Resolves the waiters of a run that this event ends. */
  observe(envelope: Envelope): void {
    if (envelope.type !== 'TASK_STATUS_UPDATE') return;
    const { taskId, status, error } = envelope.payload;
    if (status === 'starting' || status === 'running') return;
    this.#settle({ taskId, status, ...(error ? { error } : {}) });
  }

  /** A state replaced events: resolves waiters whose end was among those. */
  checkState(view: View): void {
    for (const taskId of [...this.#waiters.keys()]) {
      const end = endInView(taskId, view);
      if (end) this.#settle(end);
    }
  }

  rejectAll(failure: Failure): void {
    for (const waiters of this.#waiters.values()) waiters.forEach(({ reject }) => reject(failure));
    this.#waiters.clear();
  }

  #settle(end: RunEnd): void {
    this.#recent.set(end.taskId, end);
    const oldest = this.#recent.keys().next();
    if (this.#recent.size > MAX_REMEMBERED && !oldest.done) this.#recent.delete(oldest.value);
    this.#waiters.get(end.taskId)?.forEach(({ resolve }) => resolve(end));
    this.#waiters.delete(end.taskId);
  }
}

/** The end of a run as far as a view shows it; undefined if it runs, is queued or is unknown. */
function endInView(taskId: string, { currentTask, queue, messages }: View): RunEnd | undefined {
  if (queue.some((waiting) => waiting.taskId === taskId)) return undefined;
  if (currentTask?.id === taskId) {
    const { status, error } = currentTask;
    return status === 'running' || status === 'starting' ? undefined : { taskId, status, ...(error ? { error } : {}) };
  }
  return messages.some((message) => message.taskId === taskId) ? { taskId, status: 'unknown' } : undefined;
}
