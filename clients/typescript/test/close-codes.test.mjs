// Close codes: what the client does after each of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Backoff, closeAction } from '../dist/index.js';
import { fakeGateway } from './support/fake-gateway.mjs';
import { record, waitFor } from './support/gateway-process.mjs';

for (const [code, failure] of [[4400, 'INVALID_MESSAGE'], [4403, 'FORBIDDEN'], [4404, 'NOT_FOUND'], [4409, 'NOT_FOUND']]) {
  test(`after ${code} the session does not reconnect`, async () => {
    const { sockets, join } = fakeGateway((socket) => (socket.open(), socket.closeFromServer(code, 'because')));
    const session = await join();
    const waiting = session.prompt('hello');
    await assert.rejects(waiting, { code: failure, status: code });
    await sleep(100);
    assert.equal(sockets.length, 1);
    assert.equal(session.failure.message, 'because');
  });
}

test('after 1012 the session waits as long as the gateway says', async () => {
  const { sockets, join } = fakeGateway((socket, count) => (socket.open(), count === 1 && socket.closeFromServer(1012, 'restart; retryAfterMs=300')));
  const session = await join();
  await waitFor('the reconnect', () => sockets.length === 2);
  assert.ok(sockets[1].at - sockets[0].at >= 295);
  session.close();
});

test('after 4429 the session waits before it reconnects', async () => {
  const { sockets, join } = fakeGateway((socket, count) => (socket.open(), count === 1 && socket.closeFromServer(4429, 'flooding')));
  const session = await join({ throttleWaitMs: 200 });
  await waitFor('the reconnect', () => sockets.length === 2);
  assert.ok(sockets[1].at - sockets[0].at >= 195);
  session.close();
});

test('after 4401 the session reconnects with a new token', async () => {
  const { sockets, join } = fakeGateway((socket, count) => {
    if (count > 1) return socket.open();
    socket.onopen({});
    socket.receive('ERROR_MESSAGE', { code: 'SESSION_EXPIRED', message: 'expired', recoverable: false });
    return socket.closeFromServer(4401);
  }, { refresh: () => 'token-1' });
  const session = await join();
  await session.ready;
  assert.deepEqual(sockets.map(({ token }) => token), ['token-0', 'token-1']);
  session.close();
});

test('a session ends if every new token is refused', async () => {
  let count = 0;
  const { sockets, join } = fakeGateway((socket) => socket.closeFromServer(4401), { refresh: () => `token-${(count += 1)}` });
  const session = await join();
  await assert.rejects(session.ready, { code: 'AUTH_FAILED' });
  assert.ok(sockets.length <= 4, `${sockets.length} tries`);
  assert.equal(new Set(sockets.map(({ token }) => token)).size, sockets.length, 'no token was tried twice');
});

test('a refresh that fails for now is retried', async () => {
  let count = 0;
  const { sockets, join } = fakeGateway((socket, tries) => (tries > 1 ? socket.open() : socket.closeFromServer(4401)), {
    refresh: () => ((count += 1) < 3 ? new Response('', { status: 503 }) : 'token-1'),
  });
  const session = await join();
  await session.ready;
  assert.deepEqual([count, sockets.length], [3, 2]);
  session.close();
});

test('after 1009 the commands that were sent are not resent', async () => {
  const { sockets, join } = fakeGateway((socket, count) => {
    socket.open();
    socket.onCommand = () => (count === 1 ? socket.closeFromServer(1009, 'frame too large') : undefined);
  });
  const session = await join();
  await assert.rejects(session.prompt('big'), { code: 'VALIDATION_ERROR', status: 1009 });
  await waitFor('the reconnect', () => sockets.length === 2 && session.status === 'open');
  assert.deepEqual(sockets[1].sent, []);
  session.close();
});

test('a lost connection is retried with growing waits', async () => {
  const { sockets, join } = fakeGateway((socket) => socket.closeFromServer(1006));
  const session = await join({ backoff: { baseMs: 20, maxMs: 160, random: () => 1 } });
  await waitFor('six attempts', () => sockets.length === 6);
  session.close();
  const waits = sockets.slice(1).map(({ at }, index) => at - sockets[index].at);
  for (const [index, wait] of [20, 40, 80, 160, 160].entries()) assert.ok(waits[index] >= wait - 5, `${waits}`);
  await sleep(200);
  assert.equal(sockets.length, 6, 'no attempts after close');
});

test('backoff doubles up to a bound, with jitter', () => {
  const low = new Backoff({ random: () => 0 });
  const high = new Backoff({ random: () => 1 });
  assert.deepEqual([low.next(), low.next(), low.next()], [125, 250, 500]);
  assert.deepEqual([high.next(), high.next()], [250, 500]);
  for (let count = 0; count < 2000; count += 1) assert.ok(high.next() <= 30_000);
  high.reset();
  assert.equal(high.next(), 250);
  assert.equal(closeAction({ code: 4408, reason: '' }), 'retry');
});

test('an unanswered command is resent unchanged under the same key', async () => {
  const { sockets, join } = fakeGateway((socket, count) => {
    socket.open();
    socket.onCommand = ({ messageId }) => (count === 1 ? socket.closeFromServer(1006) : socket.receive('ACK', { taskId: 'run_1', repeated: true }, { messageId }));
  });
  const session = await join();
  assert.equal((await session.prompt('hello')).taskId, 'run_1');
  assert.deepEqual(sockets[0].sent, sockets[1].sent);
  assert.ok(sockets[0].sent[0].idempotencyKey);
  session.close();
});

test('a command refused by a rate limit or a storage failure is resent', async () => {
  const { sockets, join } = fakeGateway((socket) => {
    socket.open();
    let count = 0;
    socket.onCommand = ({ messageId }) => {
      count += 1;
      if (count === 1) socket.receive('ERROR_MESSAGE', { code: 'RATE_LIMITED', message: '', recoverable: true, details: { retryAfterMs: 50 } });
      else if (count === 2) socket.receive('ERROR_MESSAGE', { code: 'STORAGE_UNAVAILABLE', message: '', recoverable: true }, { messageId });
      else socket.receive('ACK', { taskId: 'run_1' }, { messageId });
    };
  });
  const session = await join();
  assert.equal((await session.prompt('hello')).taskId, 'run_1');
  assert.equal(new Set(sockets[0].sent.map((command) => JSON.stringify(command))).size, 1);
  session.close();
});

test('a dead connection is noticed and replaced', async () => {
  const { sockets, join } = fakeGateway((socket) => socket.open({ heartbeatSeconds: 0.1 }));
  const session = await join({ keepaliveTimeoutMs: 200 });
  const { lost } = record(session);
  await waitFor('the reconnect', () => sockets.length === 2, 3000);
  assert.equal(lost[0].reason, 'no sign of life');
  assert.equal(sockets[0].sent[0].type, 'HEARTBEAT');
  session.close();
});

test('a connection that answers heartbeats stays open', async () => {
  const { sockets, join } = fakeGateway((socket) => {
    socket.open({ heartbeatSeconds: 0.1 });
    socket.onCommand = () => socket.receive('HEARTBEAT', {});
  });
  const session = await join({ keepaliveTimeoutMs: 200 });
  await sleep(1000);
  assert.equal(sockets.length, 1);
  assert.ok(sockets[0].sent.length >= 3);
  session.close();
});

test('duplicate events are ignored, and a gap is filled by the state', async () => {
  const title = (socket, offset) => socket.receive('TITLE_UPDATE', { title: `${offset}` }, { offset });
  const state = { epoch: 'epo_1', offset: 5, conversationHistory: [], tools: [], questions: [], queue: [], plan: [], commands: [], capabilities: [], title: '5' };
  const { sockets, join } = fakeGateway((socket, count) => {
    if (count === 1) {
      socket.open();
      for (const offset of [1, 2, 2, 1, 3, 5]) title(socket, offset);
    } else {
      socket.open({ resume: 'snapshot', offset: 5 });
      socket.receive('FULL_STATE', state);
      title(socket, 6);
    }
  });
  const session = await join();
  const recorded = record(session);
  await waitFor('the state', () => session.store.view.title === '6');
  assert.deepEqual(recorded.events.map(({ offset }) => offset), [1, 2, 3, 6]);
  assert.deepEqual(sockets.map(({ url }) => url.searchParams.get('epoch')), [null, 'none']);
  assert.deepEqual(session.cursor, { epoch: 'epo_1', offset: 6 });
  session.close();
});

test('a command sent before a snapshot is answered after it', async () => {
  const state = { epoch: 'epo_2', offset: 9, conversationHistory: [], tools: [], questions: [], queue: [], plan: [], commands: [], capabilities: [] };
  const { sockets, join } = fakeGateway((socket, count) => {
    if (count === 1) return socket.closeFromServer(1006);
    socket.open({ resume: 'snapshot', epoch: 'epo_2', offset: 9 });
    assert.deepEqual(socket.sent, []);
    socket.onCommand = ({ messageId }) => socket.receive('TASK_STATUS_UPDATE', { taskId: 'run_1', status: 'starting', prompt: { text: 'hello' }, userMessageId: 'msg_1' }, { offset: 10, messageId });
    return socket.receive('FULL_STATE', state);
  });
  const session = await join();
  assert.equal((await session.prompt('hello')).taskId, 'run_1');
  assert.equal(sockets.length, 2);
  session.close();
});
