// Login and commands: the client against a real gateway.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Failure, Gateway } from '../dist/index.js';
import { admin, GatewayProcess, journal, record, waitFor, WebSocket } from './support/gateway-process.mjs';

let gateway;
before(async () => (gateway = await GatewayProcess.start()));
after(() => gateway?.stop());

for (const transport of ['socket', 'stream']) {
  test(`a logged-in user gets an answer over a ${transport}`, async () => {
    const account = await gateway.login();
    assert.equal(account.login.user.username, admin[0]);
    const session = await account.open({ title: 'First' }, { transport });
    const answer = await session.ask('/stream 3');
    assert.equal(session.transport, transport);
    assert.deepEqual([answer.status, answer.text], ['completed', '1 2 3 ']);
    const [listed] = (await account.sessions({ limit: 1 })).sessions;
    assert.deepEqual([listed.id, listed.title], [session.id, 'First']);
    session.close();
    await assert.rejects(session.prompt('/echo late'), { code: 'CONNECTION_LOST' });
  });
}

test('a wrong password fails with AUTH_FAILED', async () => {
  await assert.rejects(new Gateway(gateway.url, { WebSocket }).login('admin', 'wrong wrong'), (error) => {
    assert.ok(error instanceof Failure);
    assert.deepEqual([error.code, error.status], ['AUTH_FAILED', 401]);
    return true;
  });
});

test('a missing gateway fails with UNREACHABLE', async () => {
  await assert.rejects(new Gateway('http://127.0.0.1:1', { WebSocket }).login(...admin), { code: 'UNREACHABLE' });
});

test('concurrent renewals share one request, and a later one makes another', async () => {
  let refreshes = 0;
  const counting = (url, init) => ((refreshes += String(url).endsWith('/refresh') ? 1 : 0), fetch(url, init));
  const account = await new Gateway(gateway.url, { WebSocket, fetch: counting }).login(...admin);
  const first = account.login.token;
  const renewed = await Promise.all([1, 2, 3, 4].map(() => account.login.renew(first)));
  assert.equal(refreshes, 1);
  assert.equal(new Set(renewed).size, 1);
  assert.notEqual(renewed[0], first);
  assert.equal(await account.login.renew(first), renewed[0], 'a late caller gets the current token');
  assert.notEqual(await account.login.renew(renewed[0]), renewed[0], 'the next cookie was used');
  assert.equal(refreshes, 2);
});

test('logging out ends the sessions and the login', async () => {
  const account = await gateway.login();
  const session = await account.open();
  await session.ready;
  const { token } = account.login;
  await account.logout();
  await waitFor('the session has ended', () => session.status === 'ended', 5000);
  assert.equal(session.failure.code, 'AUTH_FAILED');
  await assert.rejects(account.login.renew(token), { code: 'AUTH_FAILED' });
});

test('commands of every kind are answered', async () => {
  const account = await gateway.login();
  const session = await account.open();
  const recorded = record(session);
  await session.ready;
  assert.ok((await session.send('QUERY', { kind: 'models' })).result);
  await session.send('UPDATE_SETTINGS', { settings: { model: 'small' } });
  await session.send('UPDATE_CONTEXT', { cwd: '/src' });
  await session.send('SET_TOOLS', { tools: ['read'] });
  await session.send('SET_QUEUE_MODE', { followUp: 'all' });
  await session.send('SUGGEST', { text: 'try the tests' });
  await assert.rejects(session.send('WITHDRAW', { taskId: `run_${'0'.repeat(32)}` }), { code: 'NOT_FOUND' });
  await assert.rejects(session.send('UPDATE_SETTINGS', { settings: { temperature: 9 } }), { code: 'VALIDATION_ERROR' });
  await assert.rejects(session.prompt('x'.repeat(1_100_000)), { code: 'VALIDATION_ERROR' });
  const { control } = await session.send('TAKE_CONTROL', {});
  await session.send('STEER', { text: '/echo steered' }, { fence: control.fence });
  await assert.rejects(session.send('FOLLOW_UP', { text: '/echo stale' }, { fence: control.fence + 1 }), { code: 'FORBIDDEN' });
  await session.send('RELEASE_CONTROL', {});
  await waitFor('the steered run', () => recorded.events.some((event) => event.payload.status === 'completed'));
  const { view } = session.store;
  assert.deepEqual([view.settings.model, view.enabledTools, view.queueModes.followUp], ['small', ['read'], 'all']);
  assert.equal(view.suggestions[0].text, 'try the tests');
  const branch = await session.send('BRANCH_SESSION', {});
  const other = account.join(branch.sessionId, { from: 'start' });
  await other.ready;
  assert.equal(other.store.view.offset, branch.offset);
  assert.deepEqual(recorded.events, await journal(account, session.id));
  session.close();
  other.close();
});

test('joining with a cursor and a store receives only newer events', async () => {
  const account = await gateway.login();
  const session = await account.open();
  await session.ask('/echo one');
  const { cursor, store, id } = session;
  session.close();
  const other = account.join(id);
  await other.ask('/echo two');
  other.close();
  const again = account.join(id, { from: cursor, store });
  const recorded = record(again);
  await again.ready;
  assert.equal(recorded.events[0].offset, cursor.offset + 1);
  assert.deepEqual(recorded.snapshots, []);
  assert.deepEqual(again.store.state, await again.send('REQUEST_STATE', {}));
  again.close();
});
