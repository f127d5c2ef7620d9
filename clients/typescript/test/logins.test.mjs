// Ways to log in, and tabs of one browser that share a login.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Gateway, Login } from '../dist/index.js';
import { alone } from '../dist/turns.js';
import { GatewayProcess, WebSocket } from './stage/gateway.mjs';

let gateway, alice;
before(async () => {
  gateway = await GatewayProcess.start();
  alice = await gateway.login();
});
after(() => gateway?.stop());

test('somebody who was invited sets a password and works', async () => {
  const { invite } = await alice.request('POST', '/api/admin/users', { username: 'ivy' });
  const token = new URL(invite.url).hash.replace('#t=', '');
  const ivy = await new Gateway(gateway.url, { WebSocket }).accept(token, 'ivy likes trains');
  assert.deepEqual([ivy.login.user.username, ivy.login.user.role], ['ivy', 'member']);
  const session = await ivy.open();
  assert.equal((await session.ask('/echo hello')).text, 'hello');
  session.close();
  await assert.rejects(new Gateway(gateway.url).accept(token, 'somebody else'), { code: 'FORBIDDEN' });
});

test('a gateway that is set up is not set up again', async () => {
  await assert.rejects(new Gateway(gateway.url).setUp('nonsense', 'eve', 'eve likes trains'), { code: 'FORBIDDEN' });
});

/** A gateway whose cookie belongs to whoever is next in the list. */
const shared = (...users) => ({
  base: 'http://gateway.test',
  fetch: async () => {
    const id = users.shift();
    return Response.json({ token: `token of ${id}`, expiresAt: '', user: { id, username: id, role: 'member' } });
  },
});

test('a login does not turn into that of somebody else who uses the browser', async () => {
  const login = await Login.start(shared('ann', 'ann', 'ben', 'ann'), 'ann', 'secret');
  await login.renew(login.token);
  await assert.rejects(login.renew(login.token), { code: 'OTHER_USER', message: /ben has logged in/ });
  assert.equal(login.user.id, 'ann');
  // For good: what ann sees must not depend on who is asked next.
  await assert.rejects(login.renew(login.token), { code: 'OTHER_USER' });
});

test('tabs refresh one after the other, also where there are no locks', async (t) => {
  const kept = new Map();
  globalThis.localStorage = {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
    removeItem: (name) => kept.delete(name),
  };
  t.after(() => delete globalThis.localStorage);
  let now = 0, most = 0;
  const task = async (name) => {
    most = Math.max(most, (now += 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    now -= 1;
    return name;
  };
  const done = await Promise.all(['a', 'b', 'c'].map((name) => alone(() => task(name), true)));
  assert.deepEqual([done, most, kept.size], [['a', 'b', 'c'], 1, 0]);
  await assert.rejects(alone(() => Promise.reject(new Error('no')), true), /no/);
  assert.equal(kept.size, 0);
  // A lease whose owner is gone holds up nobody for long.
  kept.set('switchboard-refresh', String(Date.now() - 2_900));
  assert.equal(await alone(() => task('d'), true), 'd');
});
