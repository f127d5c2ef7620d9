// Bad network: slow connections, blocked WebSockets, refused tokens.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Gateway } from '../dist/index.js';
import { Proxy } from './support/faulty-proxy.mjs';
import { GatewayProcess, hasAllOffsets, journal, record, texts, waitFor, WebSocket } from './support/gateway-process.mjs';

let gateway, proxy;
before(async () => {
  proxy = await Proxy.start();
  gateway = await GatewayProcess.start({ publicUrl: proxy.url });
  proxy.target = gateway.port;
});
beforeEach(() => Object.assign(proxy, { bytesPerSecond: Infinity, refusesUpgrades: false }));
after(async () => {
  await proxy.stop();
  await gateway?.stop();
});

for (const transport of ['socket', 'stream']) {
  test(`a slow ${transport} receives everything`, async () => {
    const account = await gateway.login(proxy.url);
    const session = await account.open({}, { transport, from: 'start' });
    const recorded = record(session);
    await session.ready;
    proxy.bytesPerSecond = 60_000;
    const answer = await session.ask('/chunks 400 300');
    proxy.bytesPerSecond = Infinity;
    assert.equal(answer.text.length, 120_000);
    assert.ok(hasAllOffsets(recorded.events));
    assert.equal(recorded.opened, 1);
    assert.deepEqual(texts(recorded.events), texts(await journal(account, session.id)));
    assert.deepEqual(session.store.state, await session.send('REQUEST_STATE', {}));
    session.close();
  });
}

test('where WebSockets are blocked, a stream does everything', async () => {
  proxy.refusesUpgrades = true;
  const account = await gateway.login(proxy.url);
  const session = await account.open();
  const recorded = record(session);
  assert.equal((await session.ask('/stream 5')).text, '1 2 3 4 5 ');
  assert.equal(session.transport, 'stream');
  const { taskId } = await session.prompt('/tool');
  const question = await waitFor('a question', () => session.store.view.questions[0]);
  assert.equal((await session.answer(question.questionId, { ok: true })).accepted, true);
  assert.equal((await session.end(taskId)).status, 'completed');
  const { control } = await session.send('TAKE_CONTROL', {});
  assert.equal(control.connectionId, session.acknowledgement.connectionId);
  const long = await session.prompt('/stream 10000 5');
  await session.cancel();
  assert.equal((await session.end(long.taskId)).status, 'cancelled');
  const upgrades = proxy.upgrades;
  proxy.cutAll();
  await waitFor('the reconnect', () => recorded.opened === 2);
  assert.equal(proxy.upgrades, upgrades, 'a refused upgrade is not retried at once');
  assert.deepEqual(session.store.state, await session.send('REQUEST_STATE', {}));
  session.close();
});

test('a connection that is never acknowledged is dropped', async () => {
  const account = await gateway.login(proxy.url);
  const { id } = await account.request('POST', '/api/sessions', {});
  proxy.bytesPerSecond = 1;
  const session = account.join(id, { openTimeoutMs: 300, backoff: { baseMs: 10 } });
  const { lost } = record(session);
  await waitFor('the drop', () => lost.some(({ reason }) => reason === 'not acknowledged in time'), 5000);
  proxy.bytesPerSecond = Infinity;
  assert.equal((await session.ask('/echo alive')).text, 'alive');
  session.close();
});

test('a revoked token is not retried', async () => {
  const other = await gateway.login(proxy.url);
  for (const transport of ['socket', 'stream']) {
    const victim = await gateway.login(proxy.url);
    const session = await victim.open({}, { transport, backoff: { baseMs: 1, maxMs: 5 } });
    await session.ready;
    const { login } = await victim.request('GET', '/api/auth/me');
    await other.request('DELETE', `/api/auth/logins/${login.id}`);
    await waitFor('the session has ended', () => session.status === 'ended', 5000);
    assert.equal(session.failure.code, 'AUTH_FAILED');
    const { connections } = proxy;
    await sleep(300);
    assert.equal(proxy.connections, connections);
    await assert.rejects(session.send('HEARTBEAT', {}), { code: 'AUTH_FAILED' });
    await assert.rejects(victim.sessions(), { code: 'AUTH_FAILED' });
  }
});

test('an invalid token ends the session at once', async () => {
  const { id } = await (await gateway.login(proxy.url)).request('POST', '/api/sessions', {});
  for (const transport of ['socket', 'stream', 'auto']) {
    const before = proxy.connections;
    const session = new Gateway(proxy.url, { WebSocket }).use('no.such.token').join(id, { transport });
    await assert.rejects(session.ready, { code: 'AUTH_FAILED' });
    assert.equal(session.status, 'ended');
    assert.ok(proxy.connections - before <= 1);
  }
});
