// Route: which page is shown. It is stored in the fragment, so that the page works under any base path and
// the back button works.
import { signal } from '@preact/signals';

/** Sections of the administration, in menu order. */
export const ADMIN_SECTIONS = ['overview', 'users', 'connections', 'sessions', 'agents', 'audit', 'notice'] as const;
export type AdminSection = (typeof ADMIN_SECTIONS)[number];

export type Route =
  | { page: 'new' }
  /** `at`: the offset to show; `words`: what to mark there. */
  | { page: 'session'; id: string; at?: number; words?: string }
  | { page: 'account' }
  | { page: 'admin'; section: AdminSection };

/** The gateway's address: everything up to the last slash. */
export const baseUrl = new URL('.', location.href).href.replace(/\/$/, '');

export type EntryPage = 'main' | 'setup' | 'invite';

/** Which of the gateway's pages was opened. The other two are left once their form is done. */
export const entryPage = signal<EntryPage>(entryPageOf(location.pathname));

function entryPageOf(path: string): EntryPage {
  const page = path.split('/').pop();
  return page === 'setup' || page === 'invite' ? page : 'main';
}

/** Replaces a one-time link with the main page, so that a reload does not return to the link. */
export function leaveEntryPage(): void {
  if (entryPage.value === 'main') return;
  history.replaceState(null, '', './');
  entryPage.value = 'main';
  route.value = { page: 'new' };
}

/** The current route. */
export const route = signal<Route>(parseHash(location.hash));

addEventListener('hashchange', () => {
  route.value = parseHash(location.hash);
});

function parseHash(hash: string): Route {
  const [page, rest, at, words] = hash.replace(/^#\/?/, '').split('/');
  if (page === 's' && rest) return sessionRoute(rest, at, words);
  if (page === 'account') return { page: 'account' };
  if (page === 'admin') return { page: 'admin', section: ADMIN_SECTIONS.find((section) => section === rest) ?? 'overview' };
  return { page: 'new' };
}

function sessionRoute(id: string, at: string | undefined, words: string | undefined): Route {
  if (at === undefined || !/^\d+$/.test(at)) return { page: 'session', id };
  return { page: 'session', id, at: Number(at), ...(words ? { words: decoded(words) } : {}) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The link target of a route. */
export function hrefOf(to: Route): string {
  switch (to.page) {
    case 'session':
      return `#/s/${to.id}${to.at === undefined ? '' : `/${to.at}${to.words === undefined ? '' : `/${encodeURIComponent(to.words)}`}`}`;
    case 'account':
      return '#/account';
    case 'admin':
      return `#/admin/${to.section}`;
    default:
      return '#/';
  }
}

/** Shows a route. `replace`: without a new history entry. */
export function navigate(to: Route, mode: 'push' | 'replace' = 'push'): void {
  const target = hrefOf(to);
  if (mode === 'replace') {
    history.replaceState(null, '', target);
    route.value = to;
  } else if (location.hash !== target) {
    location.hash = target;
  }
}
