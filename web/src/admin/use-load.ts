// Loading: hooks that read from the gateway, once or periodically.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { explain } from '../auth';

/** The state of something that is loaded. */
export interface Loaded<T> {
  /** The latest result; kept when a later attempt fails. */
  data?: T | undefined;
  /** Why the latest attempt failed. */
  error?: string | undefined;
  /** When `data` was read. */
  at?: number | undefined;
  isLoading: boolean;
  /** Loads again. Never rejects: a failure is in `error`. */
  reload: () => Promise<void>;
}

/**
 * Loads something, and again when `dependency` changes or every `everyMs`. Only the latest request counts.
 * Nothing is loaded while the page is hidden.
 */
export function useLoad<T>(read: () => Promise<T>, dependency = '', everyMs?: number): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'>>({ isLoading: true });
  const latestRequest = useRef(0);
  const isBusy = useRef(false);
  const latestRead = useRef(read);
  latestRead.current = read;

  const reload = useCallback(async () => {
    const request = (latestRequest.current += 1);
    isBusy.current = true;
    setState((previous) => ({ ...previous, isLoading: true }));
    const next = await latestRead.current().then(
      (data) => ({ data, at: Date.now(), error: undefined }),
      (error: unknown) => ({ error: explain(error) }),
    );
    if (request !== latestRequest.current) return;
    isBusy.current = false;
    setState((previous) => ({ ...previous, ...next, isLoading: false }));
  }, []);

  useEffect(() => {
    void reload();
    return () => {
      latestRequest.current += 1;
    };
  }, [dependency]);
  // Retry a failed attempt when the network is back.
  const hasFailed = state.error !== undefined;
  useEffect(() => {
    if (!hasFailed) return undefined;
    const onOnline = () => void reload();
    addEventListener('online', onOnline);
    return () => removeEventListener('online', onOnline);
  }, [hasFailed]);
  useEffect(() => (everyMs === undefined ? undefined : repeatWhileVisible(() => isBusy.current || void reload(), everyMs)), [everyMs]);
  return { ...state, reload };
}

/** Calls periodically while the page is visible, and at once when it becomes visible. */
function repeatWhileVisible(call: () => void, everyMs: number): () => void {
  const onVisible = () => document.hidden || call();
  const timer = setInterval(onVisible, everyMs);
  document.addEventListener('visibilitychange', onVisible);
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', onVisible);
  };
}

/** One page of a list, and the cursor of the next one. */
export interface Page<Item> {
  items: readonly Item[];
  next?: string | number | null | undefined;
}

/** `size`: rows added per "more"; `maxPerRequest`: the API's limit. */
export interface PageSize {
  size: number;
  maxPerRequest: number;
  everyMs?: number;
}

/**
 * A list of several pages. Each reload reads all shown pages again, so that no row is repeated or missing
 * after the list has changed.
 */
export function useList<Item>(read: (from: string | number | undefined, limit: number) => Promise<Page<Item>>, dependency: string, { size, maxPerRequest, everyMs }: PageSize): Loaded<Page<Item>> & { more: () => Promise<void> } {
  const requested = useRef({ dependency, count: size });
  if (requested.current.dependency !== dependency) requested.current = { dependency, count: size };
  const all = async (): Promise<Page<Item>> => {
    const { count } = requested.current;
    const items: Item[] = [];
    let next: Page<Item>['next'];
    do {
      const page = await read(next ?? undefined, Math.min(maxPerRequest, count - items.length));
      items.push(...page.items);
      next = page.next;
    } while (next != null && items.length < count);
    return { items, next };
  };
  const list = useLoad(all, dependency, everyMs);
  const more = () => {
    requested.current.count += size;
    return list.reload();
  };
  return { ...list, more };
}

/** A path with the parameters that have a value. */
export function withQuery(path: string, parameters: Record<string, string | number | undefined>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]): [string, string][] => (value === undefined || value === '' ? [] : [[name, String(value)]]));
  return pairs.length > 0 ? `${path}?${new URLSearchParams(pairs)}` : path;
}
