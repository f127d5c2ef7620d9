// What the gateway gives and takes away, and what the client makes of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GatewayProcess, record, until } from './stage/gateway.mjs';

const bob = ['bob', 'another long secret'];
let gateway, alice;
before(async () => {
  gateway = await GatewayProcess.start({ env: { SWITCHBOARD__AUTH__ACCESS_TOKEN_MINUTES: '1' } });
  alice = await gateway.login();
  await alice.request('POST', '/api/admin/users', { username: bob[0], password: bob[1] });
});
after(() => gateway?.stop());

for (const transport of ['socket', 'stream']) {
  test(`a session that does not exist ends the try over a ${transport}`, async () => {
    const session = alice.join(`ses_${'0'.repeat(32)}`, { transport });
    await assert.rejects(session.ready, { code: 'NOT_FOUND', status: 4404 });
  });

  test(`a session that is ended does not come back over a ${transport}`, async () => {
    const session = await alice.open({}, { transport });
    await session.ask('/echo last words');
    await alice.request('DELETE', `/api/sessions/${session.id}`);
    await until('the end', () => session.status === 'ended', 5000);
    assert.equal(session.failure.status, 4409);
  });

  test(`whoever is shut out does not come back over a ${transport}`, async () => {
    const session = await alice.open({}, { transport });
    await session.ask('/echo hello');
    await alice.request('PUT', `/api/sessions/${session.id}/grants/bob`, { role: 'viewer' });
    const guest = (await gateway.login(gateway.url, bob)).join(session.id, { transport });
    await guest.ready;
    assert.equal(guest.store.view.messages.at(-1).content, 'hello');
    await until('both are seen', () => session.store.view.presence.length === 2);
    await until('by both', () => guest.store.view.presence.length === 2);
    assert.deepEqual(guest.store.view.presence.map(({ username }) => username).sort(), ['admin', 'bob']);
    await assert.rejects(guest.prompt('/echo no'), { code: 'FORBIDDEN' });
    await alice.request('DELETE', `/api/sessions/${session.id}/grants/bob`);
    await until('the end', () => guest.status === 'ended', 5000);
    assert.deepEqual([guest.failure.code, guest.failure.status], ['FORBIDDEN', 4403]);
    await until('one is left', () => session.store.view.presence.length === 1);
    session.close();
  });
}

test('a socket gets a new token in time and lives on', async () => {
  const account = await gateway.login();
  // The tokens of this gateway live for a minute, so the warning comes at once.
  const session = await account.open({}, { transport: 'socket', renewBeforeMs: 59_000 });
  const heard = record(session);
  await session.ready;
  const first = account.login.token;
  await until('a new token', () => account.login.token !== first);
  const second = account.login.token;
  await until('the next one', () => account.login.token !== second);
  assert.equal((await session.ask('/echo still here')).text, 'still here');
  assert.deepEqual([heard.opened, heard.lost.length], [1, 0]);
  session.close();
});

test('a stream is opened anew with a new token, and misses nothing', async () => {
  const account = await gateway.login();
  const session = await account.open({}, { transport: 'stream', renewBeforeMs: 59_000, from: 'start' });
  const heard = record(session);
  const answer = await session.ask('/stream 300 10');
  assert.equal(answer.text, Array.from({ length: 300 }, (_, place) => `${place + 1} `).join(''));
  assert.ok(heard.opened >= 2, `${heard.opened} streams`);
  assert.deepEqual(heard.lost, []);
  assert.deepEqual(heard.events.map(({ offset }) => offset), heard.events.map((_, place) => place + 1));
  session.close();
});

test('a notice of an administrator is told', async () => {
  const session = await alice.open();
  const notices = [];
  session.on('notice', (notice) => notices.push(notice));
  await session.ready;
  await alice.request('POST', '/api/admin/notices', { message: 'Coffee', level: 'info' });
  await until('the notice', () => notices.length > 0);
  assert.deepEqual(notices, [{ level: 'info', message: 'Coffee' }]);
  session.close();
});
