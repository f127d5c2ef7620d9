// Gateway restart: a killed and a stopped gateway.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayProcess, hasAllOffsets, journal, record, waitFor } from './support/gateway-process.mjs';

let gateway;
before(async () => (gateway = await GatewayProcess.start()));
after(() => gateway?.stop());

for (const transport of ['socket', 'stream']) {
  test(`a kill -9 in mid-stream loses, repeats and reorders nothing over a ${transport}`, async () => {
    const account = await gateway.login();
    const session = await account.open({}, { transport, from: 'start', backoff: { baseMs: 50, maxMs: 300 } });
    const recorded = record(session);
    const { taskId } = await session.prompt('/stream 5000 2');
    const queued = await session.prompt('/echo waited');
    await waitFor('some events', () => recorded.events.length > 100);
    await gateway.end('SIGKILL');
    await waitFor('the connection is lost', () => recorded.lost.length > 0);
    // Prompts sent while the gateway is down.
    const sent = ['a', 'b', 'c'].map((word) => session.prompt(`/echo ${word}`));
    await sleep(300);
    await gateway.run();
    assert.deepEqual(await session.end(taskId).then(({ status, error }) => [status, error.code]), ['error', 'CONNECTION_LOST']);
    assert.equal((await session.end(queued.taskId)).status, 'completed');
    for (const done of await Promise.all(sent)) assert.equal((await session.end(done.taskId)).status, 'completed');
    assert.ok(hasAllOffsets(recorded.events));
    assert.deepEqual(recorded.snapshots, []);
    const stored = await journal(account, session.id);
    assert.deepEqual(recorded.events, stored, 'the received events are the stored ones');
    const started = stored.filter(({ payload }) => payload.status === 'starting').map(({ payload }) => payload.prompt.text);
    assert.deepEqual(started, ['/stream 5000 2', '/echo waited', '/echo a', '/echo b', '/echo c']);
    assert.deepEqual(session.store.state, await session.send('REQUEST_STATE', {}));
    session.close();
  });
}

test('the client waits as long as a stopping gateway says', async () => {
  const account = await gateway.login();
  const session = await account.open();
  const recorded = record(session);
  await session.ready;
  await gateway.end('SIGTERM');
  const lostAt = Date.now();
  const [end] = await waitFor('the connection is lost', () => recorded.lost.length > 0 && recorded.lost);
  assert.equal(end.code, 1012);
  await gateway.run();
  await waitFor('the reconnect', () => recorded.opened === 2);
  assert.ok(Date.now() - lostAt >= end.retryAfterMs - 100, `after ${end.retryAfterMs} ms`);
  assert.equal((await session.ask('/echo back')).text, 'back');
  session.close();
});
