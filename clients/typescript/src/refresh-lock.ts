// Refresh lock: lets one tab of a browser refresh at a time, because all tabs share a single-use cookie.

const LOCK_NAME = 'switchboard-refresh';
const LEASE_MS = 3_000;

const sleep = (waitMs: number) => new Promise((resolve) => setTimeout(resolve, waitMs));

/**
 * Runs a task while no other tab does. `isShared` is false where there are no tabs, as in Node.
 *
 * The Web Locks API separates tabs. The lease in localStorage covers what it cannot: a page reloaded in the
 * middle of its refresh, and browsers without locks (plain http from another machine).
 */
export function withRefreshLock<T>(task: () => Promise<T>, isShared: boolean): Promise<T> {
  if (!isShared) return task();
  const { navigator } = globalThis as { navigator?: { locks?: LockManager } };
  return navigator?.locks ? (navigator.locks.request(LOCK_NAME, () => withLease(task)) as Promise<T>) : withLease(task);
}

async function withLease<T>(task: () => Promise<T>): Promise<T> {
  const storage = leaseStorage();
  while (Math.abs(Date.now() - Number(storage?.getItem(LOCK_NAME) ?? 0)) < LEASE_MS) await sleep(100);
  storage?.setItem(LOCK_NAME, String(Date.now()));
  try {
    return await task();
  } finally {
    storage?.removeItem(LOCK_NAME);
  }
}

/** Undefined if the browser has storage switched off. */
function leaseStorage(): Storage | undefined {
  try {
    const { localStorage } = globalThis as { localStorage?: Storage };
    localStorage?.removeItem(`${LOCK_NAME}-probe`);
    return localStorage;
  } catch {
    return undefined;
  }
}
