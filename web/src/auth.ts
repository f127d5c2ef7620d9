// Auth: who is signed in, requests as that user, and the end of the login.
import { signal } from '@preact/signals';
import { Failure, Gateway } from '@switchboard/client';
import type { Account } from '@switchboard/client';
import { baseUrl, leaveEntryPage, navigate } from './route';
import { onTabMessage, postToTabs } from './tab-channel';
import { text } from './text';

interface User {
  id: string;
  username: string;
  role: string;
}

/** Whether this browser is signed in. */
export type AuthState =
  | { is: 'starting' }
  | { is: 'unreachable'; reason: string }
  /** `reason`: shown to a user who has just been signed out; `username`: that user. */
  | { is: 'out'; reason?: string; username?: string }
  | { is: 'in'; account: Account; user: User };

/** The gateway that served this page. */
export const gateway = new Gateway(baseUrl);

export const authState = signal<AuthState>({ is: 'starting' });

/** The user who was last signed in in this tab. */
let lastUserId: string | undefined;

/** Resumes the login that the browser remembers. */
export async function resumeLogin(): Promise<void> {
  // Keep saying that the gateway is unreachable until it answers.
  if (authState.value.is !== 'unreachable') authState.value = { is: 'starting' };
  try {
    signIn(await gateway.resume());
  } catch (error) {
    const isRefused = error instanceof Failure && (error.status === 401 || error.status === 403);
    authState.value = isRefused ? { is: 'out' } : { is: 'unreachable', reason: explain(error) };
  }
}

/** Signs in with an account from a password, a setup link or an invitation. */
export function signIn(account: Account): void {
  const user = account.login.user;
  if (!user) throw new TypeError('the account has no user');
  leaveEntryPage();
  // The route of the previous user means nothing to this one.
  if (lastUserId !== undefined && lastUserId !== user.id) navigate({ page: 'new' }, 'replace');
  lastUserId = user.id;
  authState.value = { is: 'in', account, user };
  postToTabs({ is: 'in', id: user.id, username: user.username });
}

/** The signed-in user, if there is one. Reads a signal: components that call it rerender. */
export function currentUser(): User | undefined {
  const state = authState.value;
  return state.is === 'in' ? state.user : undefined;
}

/** The signed-in account. Call only from pages that require a login. */
export function account(): Account {
  const state = authState.value;
  if (state.is !== 'in') throw new Failure('AUTH_FAILED', text.account.signedOut, 401);
  return state.account;
}

/** Signs out, here and at the gateway. */
export async function signOut(): Promise<void> {
  const state = authState.value;
  if (state.is !== 'in') return;
  await state.account.logout();
  authState.value = { is: 'out', reason: text.account.loggedOut };
  postToTabs({ is: 'out', id: state.user.id });
}

/** Shows the login page with the reason. */
function showSignedOut(reason: string): void {
  const state = authState.value;
  if (state.is === 'in') authState.value = { is: 'out', reason, username: state.user.username };
}

// All tabs share one login, so each follows what happens to it in another.
onTabMessage((message) => {
  const state = authState.value;
  if (message.is === 'in' && state.is === 'out') void resumeLogin();
  // The gateway may report the end of the login before the other tab does, but without the reason.
  if (message.is === 'out' && state.is === 'out' && message.id === lastUserId) authState.value = { ...state, reason: text.account.loggedOutElsewhere };
  if (state.is !== 'in') return;
  if (message.is === 'in' && message.id !== state.user.id) showSignedOut(text.account.otherUser(message.username));
  if (message.is === 'out' && message.id === state.user.id) showSignedOut(text.account.loggedOutElsewhere);
});

/** A request as the signed-in user. Signs out if it shows that the login has ended. */
export async function request<T>(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<T> {
  const current = account();
  try {
    return await current.request<T>(method, path, body, timeoutMs);
  } catch (error) {
    signOutIfEnded(current, error);
    throw error;
  }
}

/** A request without a login. */
export async function requestAnonymously<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const response = await fetch(baseUrl + path, { method, headers, body: body === undefined ? null : JSON.stringify(body), cache: 'no-store' }).catch((error: unknown) => {
    throw new Failure('UNREACHABLE', String(error));
  });
  if (!response.ok) throw await Failure.fromResponse(response);
  return (await response.json()) as T;
}

/** Shows the login page if the login has ended. */
export function signOutIfEnded(account: Account, error: unknown): void {
  if (!account.login.ended) return;
  // Of the refusals of a refresh, only `OTHER_USER` says something the user needs to know.
  const isOtherUser = error instanceof Failure && error.code === 'OTHER_USER';
  showSignedOut(isOtherUser ? error.message : text.account.signedOut);
}

/** An error as text for the user. */
export function explain(error: unknown): string {
  if (error instanceof Failure) {
    if (error.code === 'UNREACHABLE' && error.status === 0) return navigator.onLine ? text.common.unreachable : text.common.offline;
    return error.message;
  }
  console.error(error);
  return text.common.fault;
}
