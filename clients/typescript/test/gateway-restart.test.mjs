import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayProcess, isWithoutHoles, journal, record, until } from './stage/gateway.mjs';

let gateway;
before(async () => (gateway = await GatewayProcess.start()));
after(() => gateway?.stop());

for (const transport of ['socket', 'stream']) {
  test(`a kill -9 in mid-stream loses, doubles and reorders nothing over a ${transport}`, async () => {
    const account = await gateway.login();
    const session = await account.open({}, { transport, from: 'start', backoff: { baseMs: 50, maxMs: 300 } });
    const heard = record(session);
    const { taskId } = await session.prompt('/stream 5000 2');
    const queued = await session.prompt('/echo waited');
    await until('some of it', () => heard.events.length > 100);
    await gateway.end('SIGKILL');
    await until('the line is lost', () => heard.lost.length > 0);
    // Said while nobody listens.
    const said = ['a', 'b', 'c'].map((word) => session.prompt(`/echo ${word}`));
    await sleep(300);
    await gateway.run();
    assert.deepEqual(await session.end(taskId).then(({ status, error }) => [status, error.code]), ['error', 'CONNECTION_LOST']);
    assert.equal((await session.end(queued.taskId)).status, 'completed');
    for (const done of await Promise.all(said)) assert.equal((await session.end(done.taskId)).status, 'completed');
    assert.ok(isWithoutHoles(heard.events));
    assert.deepEqual(heard.snapshots, []);
    const kept = await journal(account, session.id);
    assert.deepEqual(heard.events, kept, 'what was heard is what is kept, event by event');
    const begun = kept.filter(({ payload }) => payload.status === 'starting').map(({ payload }) => payload.prompt.text);
    assert.deepEqual(begun, ['/stream 5000 2', '/echo waited', '/echo a', '/echo b', '/echo c']);
    assert.deepEqual(session.store.state, await session.send('REQUEST_STATE', {}));
    session.close();
  });
}

test('a gateway that stops says when to come back, and that is kept to', async () => {
  const account = await gateway.login();
  const session = await account.open();
  const heard = record(session);
  await session.ready;
  await gateway.end('SIGTERM');
  const lostAt = Date.now();
  const [end] = await until('the line is lost', () => heard.lost.length > 0 && heard.lost);
  assert.equal(end.code, 1012);
  await gateway.run();
  await until('it is back', () => heard.opened === 2);
  assert.ok(Date.now() - lostAt >= end.retryAfterMs - 100, `after ${end.retryAfterMs} ms`);
  assert.equal((await session.ask('/echo back')).text, 'back');
  session.close();
});
