// Reading something from the gateway, once or again and again.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../account';

/** What is known of something that is read. */
export interface Loaded<T> {
  /** What was read last; it stays when a later try fails. */
  data?: T | undefined;
  /** Why the last try failed. */
  error?: string | undefined;
  /** When `data` was read. */
  at?: number | undefined;
  isLoading: boolean;
  /** Reads it again. Never fails: it is in `error` then. */
  reload: () => Promise<void>;
}

/**
 * Reads something, and again when `about` changes or `everyMs` have passed. Of several answers only the
 * one that was asked for last counts. While nobody looks at the page nothing is read.
 */
export function useLoad<T>(read: () => Promise<T>, about = '', everyMs?: number): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'>>({ isLoading: true });
  const turn = useRef(0);
  const isBusy = useRef(false);
  const latest = useRef(read);
  latest.current = read;

  const reload = useCallback(async () => {
    const mine = (turn.current += 1);
    isBusy.current = true;
    setState((now) => ({ ...now, isLoading: true }));
    const next = await latest.current().then(
      (data) => ({ data, at: Date.now(), error: undefined }),
      (error: unknown) => ({ error: explain(error) }),
    );
    if (mine !== turn.current) return;
    isBusy.current = false;
    setState((now) => ({ ...now, ...next, isLoading: false }));
  }, []);

  useEffect(() => {
    void reload();
    return () => {
      turn.current += 1;
    };
  }, [about]);
  // What failed for want of a network is tried again when there is one.
  const hasFailed = state.error !== undefined;
  useEffect(() => {
    if (!hasFailed) return undefined;
    const onOnline = () => void reload();
    addEventListener('online', onOnline);
    return () => removeEventListener('online', onOnline);
  }, [hasFailed]);
  useEffect(() => (everyMs === undefined ? undefined : repeat(() => isBusy.current || void reload(), everyMs)), [everyMs]);
  return { ...state, reload };
}

/** Calls while the page is looked at, and at once when somebody comes back to it. */
function repeat(call: () => void, everyMs: number): () => void {
  const onLook = () => document.hidden || call();
  const timer = setInterval(onLook, everyMs);
  document.addEventListener('visibilitychange', onLook);
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', onLook);
  };
}

/** One page of a list, and where the next one begins. */
export interface Page<Item> {
  items: readonly Item[];
  next?: string | number | null | undefined;
}

/** How a list is read: `size` more at a time, never more than `most` in one request. */
export interface Pace {
  size: number;
  most: number;
  everyMs?: number;
}

/**
 * A list as far as somebody wanted to see it. All that is shown is read anew each time, so that nothing
 * stands there twice or is missing when the list has moved meanwhile.
 */
export function useList<Item>(read: (from: string | number | undefined, limit: number) => Promise<Page<Item>>, about: string, { size, most, everyMs }: Pace): Loaded<Page<Item>> & { more: () => Promise<void> } {
  const wanted = useRef({ about, count: size });
  if (wanted.current.about !== about) wanted.current = { about, count: size };
  const all = async (): Promise<Page<Item>> => {
    const { count } = wanted.current;
    const items: Item[] = [];
    let next: Page<Item>['next'];
    do {
      const page = await read(next ?? undefined, Math.min(most, count - items.length));
      items.push(...page.items);
      next = page.next;
    } while (next != null && items.length < count);
    return { items, next };
  };
  const list = useLoad(all, about, everyMs);
  const more = () => {
    wanted.current.count += size;
    return list.reload();
  };
  return { ...list, more };
}

/** A path with those parameters that have a value. */
export function ask(path: string, given: Record<string, string | number | undefined>): string {
  const named = Object.entries(given).flatMap(([name, value]): [string, string][] => (value === undefined || value === '' ? [] : [[name, String(value)]]));
  return named.length > 0 ? `${path}?${new URLSearchParams(named)}` : path;
}
