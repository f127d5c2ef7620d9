// How runs ended, for those who wait for it.
import type { Envelope } from './envelope.js';
import type { Failure } from './failure.js';
import type { TaskError } from './generated/protocol.js';
import type { View } from './view.js';

/** The end of a run. `unknown`: it is over, but what was heard does not say how. */
export interface Ending {
  taskId: string;
  status: 'completed' | 'cancelled' | 'error' | 'unknown';
  error?: TaskError;
}

interface Waiter {
  resolve(ending: Ending): void;
  reject(failure: Failure): void;
}

const REMEMBERED = 256;

/** The latest endings, and who waits for one. */
export class Endings {
  readonly #known = new Map<string, Ending>();
  readonly #waiters = new Map<string, Waiter[]>();

  /** The end of a run, now or later. */
  of(taskId: string, view: View): Promise<Ending> {
    const known = this.#known.get(taskId) ?? past(taskId, view);
    if (known) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#waiters.set(taskId, [...(this.#waiters.get(taskId) ?? []), { resolve, reject }]);
    });
  }

  /** Looks whether a run ended with this event. */
  hear(envelope: Envelope): void {
    if (envelope.type !== 'TASK_STATUS_UPDATE') return;
    const { taskId, status, error } = envelope.payload;
    if (status === 'starting' || status === 'running') return;
    this.#tell({ taskId, status, ...(error ? { error } : {}) });
  }

  /** A state stands in the place of events: whoever waits may have missed the end. */
  look(view: View): void {
    for (const taskId of [...this.#waiters.keys()]) {
      const ending = past(taskId, view);
      if (ending) this.#tell(ending);
    }
  }

  /** Nobody will learn of any end. */
  fail(failure: Failure): void {
    for (const waiters of this.#waiters.values()) waiters.forEach(({ reject }) => reject(failure));
    this.#waiters.clear();
  }

  #tell(ending: Ending): void {
    this.#known.set(ending.taskId, ending);
    const oldest = this.#known.keys().next();
    if (this.#known.size > REMEMBERED && !oldest.done) this.#known.delete(oldest.value);
    this.#waiters.get(ending.taskId)?.forEach(({ resolve }) => resolve(ending));
    this.#waiters.delete(ending.taskId);
  }
}

/** What a view knows of the end of a run; nothing if it is under way, waits or was never heard of. */
function past(taskId: string, { currentTask, queue, messages }: View): Ending | undefined {
  if (queue.some((waiting) => waiting.taskId === taskId)) return undefined;
  if (currentTask?.id === taskId) {
    const { status, error } = currentTask;
    return status === 'running' || status === 'starting' ? undefined : { taskId, status, ...(error ? { error } : {}) };
  }
  return messages.some((message) => message.taskId === taskId) ? { taskId, status: 'unknown' } : undefined;
}
