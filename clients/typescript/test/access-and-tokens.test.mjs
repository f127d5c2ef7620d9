// Access and tokens: missing, deleted and revoked sessions, token renewal, notices.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GatewayProcess, hasAllOffsets, record, waitFor } from './support/gateway-process.mjs';

const bob = ['bob', 'another long secret'];
let gateway, alice;
before(async () => {
  gateway = await GatewayProcess.start({ env: { SWITCHBOARD__AUTH__ACCESS_TOKEN_MINUTES: '1' } });
  alice = await gateway.login();
  await alice.request('POST', '/api/admin/users', { username: bob[0], password: bob[1] });
});
after(() => gateway?.stop());

for (const transport of ['socket', 'stream']) {
  test(`joining a missing session fails over a ${transport}`, async () => {
    const session = alice.join(`ses_${'0'.repeat(32)}`, { transport });
    await assert.rejects(session.ready, { code: 'NOT_FOUND', status: 4404 });
  });

  test(`a deleted session does not reconnect over a ${transport}`, async () => {
    const session = await alice.open({}, { transport });
    await session.ask('/echo last words');
    await alice.request('DELETE', `/api/sessions/${session.id}`);
    await waitFor('the end', () => session.status === 'ended', 5000);
    assert.equal(session.failure.status, 4409);
  });

  test(`a member whose access is revoked does not reconnect over a ${transport}`, async () => {
    const session = await alice.open({}, { transport });
    await session.ask('/echo hello');
    await alice.request('PUT', `/api/sessions/${session.id}/grants/bob`, { role: 'viewer' });
    const guest = (await gateway.login(gateway.url, bob)).join(session.id, { transport });
    await guest.ready;
    assert.equal(guest.store.view.messages.at(-1).content, 'hello');
    await waitFor('two members', () => session.store.view.presence.length === 2);
    await waitFor('two members for the guest', () => guest.store.view.presence.length === 2);
    assert.deepEqual(guest.store.view.presence.map(({ username }) => username).sort(), ['admin', 'bob']);
    await assert.rejects(guest.prompt('/echo no'), { code: 'FORBIDDEN' });
    await alice.request('DELETE', `/api/sessions/${session.id}/grants/bob`);
    await waitFor('the end', () => guest.status === 'ended', 5000);
    assert.deepEqual([guest.failure.code, guest.failure.status], ['FORBIDDEN', 4403]);
    await waitFor('one member', () => session.store.view.presence.length === 1);
    session.close();
  });
}

test('a socket stays open across token renewals', async () => {
  const account = await gateway.login();
  // Tokens of this gateway live for a minute, so the expiry warning comes at once.
  const session = await account.open({}, { transport: 'socket', renewBeforeMs: 59_000 });
  const recorded = record(session);
  await session.ready;
  const first = account.login.token;
  await waitFor('a new token', () => account.login.token !== first);
  const second = account.login.token;
  await waitFor('the next one', () => account.login.token !== second);
  assert.equal((await session.ask('/echo still here')).text, 'still here');
  assert.deepEqual([recorded.opened, recorded.lost.length], [1, 0]);
  session.close();
});

test('a stream reconnects with a new token and misses nothing', async () => {
  const account = await gateway.login();
  const session = await account.open({}, { transport: 'stream', renewBeforeMs: 59_000, from: 'start' });
  const recorded = record(session);
  const answer = await session.ask('/stream 300 10');
  assert.equal(answer.text, Array.from({ length: 300 }, (_, index) => `${index + 1} `).join(''));
  assert.ok(recorded.opened >= 2, `${recorded.opened} streams`);
  assert.deepEqual(recorded.lost, []);
  // A reader that was away for more than 64 events gets chunks joined: their offsets are a range.
  assert.ok(hasAllOffsets(recorded.events), JSON.stringify(recorded.events.map(({ offset, payload }) => [payload.fromOffset, offset])));
  session.close();
});

test('a notice from an administrator is received', async () => {
  const session = await alice.open();
  const notices = [];
  session.on('notice', (notice) => notices.push(notice));
  await session.ready;
  await alice.request('POST', '/api/admin/notices', { message: 'Coffee', level: 'info' });
  await waitFor('the notice', () => notices.length > 0);
  assert.deepEqual(notices, [{ level: 'info', message: 'Coffee' }]);
  session.close();
});
