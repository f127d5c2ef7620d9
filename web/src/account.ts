// Who is signed in, and what happens when that ends.
import { signal } from '@preact/signals';
import { Failure, Gateway } from '@switchboard/client';
import type { Account } from '@switchboard/client';
import { base, go, leaveDoor } from './place';
import { onTabs, tellTabs } from './tabs';
import { text } from './text';

/** How things stand between this browser and the gateway. */
export type Standing =
  | { is: 'starting' }
  | { is: 'unreachable'; why: string }
  /** `why`: what to tell somebody who was signed in until now; `username`: who that was. */
  | { is: 'out'; why?: string; username?: string }
  | { is: 'in'; account: Account; user: { id: string; username: string; role: string } };

/** The gateway that this page came from. */
export const gateway = new Gateway(base);

/** How things stand now. */
export const standing = signal<Standing>({ is: 'starting' });

/** Who was signed in last in this tab. */
let last: string | undefined;

/** Takes up the login that the browser remembers. */
export async function start(): Promise<void> {
  // What says that the gateway is away stays until that is over.
  if (standing.value.is !== 'unreachable') standing.value = { is: 'starting' };
  try {
    enter(await gateway.resume());
  } catch (error) {
    const known = error instanceof Failure && (error.status === 401 || error.status === 403);
    standing.value = known ? { is: 'out' } : { is: 'unreachable', why: explain(error) };
  }
}

/** Signs in with whatever gave an account: a password, a setup link, an invitation. */
export function enter(account: Account): void {
  const user = account.login.user;
  if (!user) throw new TypeError('an account of somebody');
  leaveDoor();
  // The place of somebody else says nothing to this one.
  if (last !== undefined && last !== user.id) go({ page: 'new' }, 'replace');
  last = user.id;
  standing.value = { is: 'in', account, user };
  tellTabs({ is: 'in', id: user.id, username: user.username });
}

/** The account of whoever is signed in. Only called from what is shown to them. */
export function account(): Account {
  const now = standing.value;
  if (now.is !== 'in') throw new Failure('AUTH_FAILED', text.account.signedOut, 401);
  return now.account;
}

/** Signs out, here and at the gateway. */
export async function signOut(): Promise<void> {
  const now = standing.value;
  if (now.is !== 'in') return;
  await now.account.logout();
  standing.value = { is: 'out', why: text.account.loggedOut };
  tellTabs({ is: 'out', id: now.user.id });
}

/** The login has ended elsewhere: the page says so and asks for the password. */
export function signedOut(why: string): void {
  const now = standing.value;
  if (now.is === 'in') standing.value = { is: 'out', why, username: now.user.username };
}

// All tabs have one login: what happens to it in one of them holds in the others.
onTabs((news) => {
  const now = standing.value;
  if (news.is === 'in' && now.is === 'out') void start();
  // The gateway may have been faster than the other tab, but does not know why.
  if (news.is === 'out' && now.is === 'out' && news.id === last) standing.value = { ...now, why: text.account.loggedOutElsewhere };
  if (now.is !== 'in') return;
  if (news.is === 'in' && news.id !== now.user.id) signedOut(text.account.otherUser(news.username));
  if (news.is === 'out' && news.id === now.user.id) signedOut(text.account.loggedOutElsewhere);
});

/** A request as whoever is signed in. Notices when the login has ended. */
export async function request<T>(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<T> {
  const mine = account();
  try {
    return await mine.request<T>(method, path, body, timeoutMs);
  } catch (error) {
    noticeEnd(mine, error);
    throw error;
  }
}

/** Signs out if the login is over. */
export function noticeEnd(mine: Account, error: unknown): void {
  if (!mine.login.over) return;
  // Of what a refused renewal says, only that somebody else is here now is worth repeating.
  const isOther = error instanceof Failure && error.code === 'OTHER_USER';
  signedOut(isOther ? error.message : text.account.signedOut);
}

/** An error in words for a person. */
export function explain(error: unknown): string {
  if (error instanceof Failure) {
    if (error.code === 'UNREACHABLE' && error.status === 0) return navigator.onLine ? text.common.unreachable : text.common.offline;
    return error.message;
  }
  console.error(error);
  return text.common.fault;
}
