// Where in the page somebody is. What follows `#` in the address says it, so that the page works under
// any base path, and the browser's back button does what it should.
import { signal } from '@preact/signals';

/** Parts of the administration, in the order of its menu. */
export const ADMIN_PARTS = ['overview', 'users', 'connections', 'sessions', 'agents', 'audit', 'notice'] as const;
export type AdminPart = (typeof ADMIN_PARTS)[number];

/** A place in the page. */
export type Place =
  | { page: 'new' }
  | { page: 'session'; id: string }
  | { page: 'account' }
  | { page: 'admin'; part: AdminPart };

/** The address of the gateway, whatever page of it this is: everything up to the last slash. */
export const base = new URL('.', location.href).href.replace(/\/$/, '');

export type Door = 'main' | 'setup' | 'invite';

/** Which of the gateway's pages this is. The other two are left once their form is done. */
export const door = signal<Door>(doorIn(location.pathname));

function doorIn(path: string): Door {
  const page = path.split('/').pop();
  return page === 'setup' || page === 'invite' ? page : 'main';
}

/** Goes from a page with a one-time link to the main one: a reload does not come back to the link. */
export function leaveDoor(): void {
  if (door.value === 'main') return;
  history.replaceState(null, '', './');
  door.value = 'main';
  place.value = { page: 'new' };
}

/** Where somebody is now. */
export const place = signal<Place>(read(location.hash));

addEventListener('hashchange', () => {
  place.value = read(location.hash);
});

function read(hash: string): Place {
  const [page, rest] = hash.replace(/^#\/?/, '').split('/');
  if (page === 's' && rest) return { page: 'session', id: rest };
  if (page === 'account') return { page: 'account' };
  if (page === 'admin') return { page: 'admin', part: ADMIN_PARTS.find((part) => part === rest) ?? 'overview' };
  return { page: 'new' };
}

/** The address of a place, for links. */
export function address(to: Place): string {
  switch (to.page) {
    case 'session':
      return `#/s/${to.id}`;
    case 'account':
      return '#/account';
    case 'admin':
      return `#/admin/${to.part}`;
    default:
      return '#/';
  }
}

/** Goes there. `replace`: the place before is not to be come back to. */
export function go(to: Place, how: 'push' | 'replace' = 'push'): void {
  const target = address(to);
  if (how === 'replace') {
    history.replaceState(null, '', target);
    place.value = to;
  } else if (location.hash !== target) {
    location.hash = target;
  }
}
