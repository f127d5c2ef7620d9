// API: requests to the gateway, and the access token they carry.

const LEASE_KEY = 'switchboard-refresh-started';
const LEASE_MS = 3000;
const REQUEST_MS = 20000;

// In memory only: what is not stored cannot be stolen from storage.
let access = null;
let refreshing = null;
let signedOut = () => {};

/** An error with text for the user; `field` is the input to correct, if any. */
export class Problem extends Error {
  constructor(message, { status = 0, retryAfterSecs = 0, field = null } = {}) {
    super(message);
    Object.assign(this, { status, retryAfterSecs, field });
  }
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One request: no token unless given, no retry. */
export async function send(method, path, { body, token, keepalive = false } = {}) {
  const headers = { Accept: 'application/json' };
  if (body) headers['Content-Type'] = 'application/json';
  if (token) headers.Authorization = `Bearer ${token}`;
  let response, text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      keepalive,
      cache: 'no-store',
      signal: AbortSignal.timeout?.(REQUEST_MS),
    });
    text = await response.text();
  } catch {
    throw new Problem(navigator.onLine
      ? 'The server cannot be reached. Check that it is running and that you are on its network, then try again.'
      : 'This device is offline. Connect it to a network, then try again.');
  }
  let content = null;
  try { content = JSON.parse(text); } catch { /* an empty body, or a proxy's own error page */ }
  if (response.ok) return content;
  const { status } = response;
  const message = content?.detail ?? content?.title ?? `The server answered with status ${status}. Try again in a moment.`;
  const reference = status >= 500 && content?.requestId ? ` (request ${content.requestId})` : '';
  const retryAfterSecs = Number(response.headers.get('Retry-After')) || 0;
  throw new Problem(message + reference, { status, retryAfterSecs });
}

export const account = () => access;
export const clearToken = () => { access = null; };
export const onSignedOut = (callback) => { signedOut = callback; };

/** Keeps the access token of a login, setup, invite or refresh response. */
export function keepToken(answer) {
  if (!answer?.token) throw new Problem('The answer of the server could not be read. Try again in a moment.');
  access = answer;
  return answer;
}

// Refreshing twice at once would end the login. The lock separates tabs; the lease also covers a page
// reloaded in the middle of its refresh, and browsers without locks on plain http.
function withRefreshLock(task) {
  const withLease = async () => {
    try {
      while (Math.abs(Date.now() - localStorage.getItem(LEASE_KEY)) < LEASE_MS) await pause(100);
      localStorage.setItem(LEASE_KEY, Date.now());
    } catch { /* storage is switched off */ }
    try {
      return await task();
    } finally {
      try { localStorage.removeItem(LEASE_KEY); } catch { /* storage is switched off */ }
    }
  };
  return navigator.locks ? navigator.locks.request('switchboard-refresh', withLease) : withLease();
}

/** A new access token from the refresh cookie. */
export function refresh() {
  // keepalive: the new cookie arrives even if the page is closed meanwhile.
  refreshing ??= withRefreshLock(() => send('POST', 'api/auth/refresh', { keepalive: true }))
    .then(keepToken)
    .finally(() => { refreshing = null; });
  return refreshing;
}

/** A new access token while signed in; calls back if the login has ended. */
export async function renew() {
  try {
    await refresh();
  } catch (error) {
    if (error.status === 401) signedOut();
    throw error;
  }
}

/** A request as the signed-in user; renews the token once if it is refused. */
export async function call(method, path, body) {
  try {
    return await send(method, path, { body, token: access?.token });
  } catch (error) {
    if (error.status !== 401) throw error;
  }
  await renew();
  return send(method, path, { body, token: access.token });
}
