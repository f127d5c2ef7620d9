// Logins: invitation, setup, and tabs of one browser that share a login.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Gateway, Login } from '../dist/index.js';
import { withRefreshLock } from '../dist/refresh-lock.js';
import { GatewayProcess, WebSocket } from './support/gateway-process.mjs';

let gateway, alice;
before(async () => {
  gateway = await GatewayProcess.start();
  alice = await gateway.login();
});
after(() => gateway?.stop());

test('an invited user sets a password and gets an answer', async () => {
  const { invite } = await alice.request('POST', '/api/admin/users', { username: 'ivy' });
  const token = new URL(invite.url).hash.replace('#t=', '');
  const ivy = await new Gateway(gateway.url, { WebSocket }).accept(token, 'ivy likes trains');
  assert.deepEqual([ivy.login.user.username, ivy.login.user.role], ['ivy', 'member']);
  const session = await ivy.open();
  assert.equal((await session.ask('/echo hello')).text, 'hello');
  session.close();
  await assert.rejects(new Gateway(gateway.url).accept(token, 'another password'), { code: 'FORBIDDEN' });
});

test('a gateway that is set up cannot be set up again', async () => {
  await assert.rejects(new Gateway(gateway.url).setUp('nonsense', 'eve', 'eve likes trains'), { code: 'FORBIDDEN' });
});

/** A gateway whose cookie belongs to the next user in the list. */
const gatewayOf = (...users) => ({
  base: 'http://gateway.test',
  fetch: async () => {
    const id = users.shift();
    return Response.json({ token: `token of ${id}`, expiresAt: '', user: { id, username: id, role: 'member' } });
  },
});

test('a login never turns into the login of another user of the browser', async () => {
  const login = await Login.start(gatewayOf('ann', 'ann', 'ben', 'ann'), 'ann', 'secret');
  await login.renew(login.token);
  await assert.rejects(login.renew(login.token), { code: 'OTHER_USER', message: /ben has logged in/ });
  assert.equal(login.user.id, 'ann');
  // For good: ann's login must not come back with whoever uses the cookie next.
  await assert.rejects(login.renew(login.token), { code: 'OTHER_USER' });
});

test('tabs refresh one after the other, also without the Web Locks API', async (t) => {
  const stored = new Map();
  globalThis.localStorage = {
    getItem: (name) => stored.get(name) ?? null,
    setItem: (name, value) => stored.set(name, value),
    removeItem: (name) => stored.delete(name),
  };
  t.after(() => delete globalThis.localStorage);
  let running = 0, maxRunning = 0;
  const task = async (name) => {
    maxRunning = Math.max(maxRunning, (running += 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    running -= 1;
    return name;
  };
  const done = await Promise.all(['a', 'b', 'c'].map((name) => withRefreshLock(() => task(name), true)));
  assert.deepEqual([done, maxRunning, stored.size], [['a', 'b', 'c'], 1, 0]);
  await assert.rejects(withRefreshLock(() => Promise.reject(new Error('no')), true), /no/);
  assert.equal(stored.size, 0);
  // The lease of a tab that is gone expires soon.
  stored.set('switchboard-refresh', String(Date.now() - 2_900));
  assert.equal(await withRefreshLock(() => task('d'), true), 'd');
});
