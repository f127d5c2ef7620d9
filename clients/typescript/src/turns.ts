// Tabs of one browser take turns to refresh: they share a cookie that is good for one use.

const NAME = 'switchboard-refresh';
const LEASE_MS = 3_000;

const pause = (waitMs: number) => new Promise((resolve) => setTimeout(resolve, waitMs));

/**
 * Does the task while no other tab does. Where there is one tab only, as in Node, `isShared` is false.
 *
 * Locks keep tabs apart. The lease also covers a page that was reloaded while its refresh was under
 * way, and browsers that have no locks, as on plain http from another machine.
 */
export function alone<T>(task: () => Promise<T>, isShared: boolean): Promise<T> {
  if (!isShared) return task();
  const { navigator } = globalThis as { navigator?: { locks?: LockManager } };
  return navigator?.locks ? (navigator.locks.request(NAME, () => leased(task)) as Promise<T>) : leased(task);
}

async function leased<T>(task: () => Promise<T>): Promise<T> {
  const storage = leases();
  while (Math.abs(Date.now() - Number(storage?.getItem(NAME) ?? 0)) < LEASE_MS) await pause(100);
  storage?.setItem(NAME, String(Date.now()));
  try {
    return await task();
  } finally {
    storage?.removeItem(NAME);
  }
}

/** Where leases are kept, if anywhere: storage may be switched off. */
function leases(): Storage | undefined {
  try {
    const { localStorage } = globalThis as { localStorage?: Storage };
    localStorage?.removeItem(`${NAME}-probe`);
    return localStorage;
  } catch {
    return undefined;
  }
}
