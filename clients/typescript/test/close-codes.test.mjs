// What the client does when a line ends, code by code.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Backoff, verdict } from '../dist/index.js';
import { fake } from './stage/fake.mjs';
import { record, until } from './stage/gateway.mjs';

for (const [code, failure] of [[4400, 'INVALID_MESSAGE'], [4403, 'FORBIDDEN'], [4404, 'NOT_FOUND'], [4409, 'NOT_FOUND']]) {
  test(`after ${code} it does not come back`, async () => {
    const { sockets, join } = fake((socket) => (socket.open(), socket.end(code, 'because')));
    const session = await join();
    const waiting = session.prompt('hello');
    await assert.rejects(waiting, { code: failure, status: code });
    await sleep(100);
    assert.equal(sockets.length, 1);
    assert.equal(session.failure.message, 'because');
  });
}

test('after 1012 it waits as told', async () => {
  const { sockets, join } = fake((socket, count) => (socket.open(), count === 1 && socket.end(1012, 'restart; retryAfterMs=300')));
  const session = await join();
  await until('it is back', () => sockets.length === 2);
  assert.ok(sockets[1].at - sockets[0].at >= 295);
  session.close();
});

test('after 4429 it comes back later', async () => {
  const { sockets, join } = fake((socket, count) => (socket.open(), count === 1 && socket.end(4429, 'flooding')));
  const session = await join({ laterMs: 200 });
  await until('it is back', () => sockets.length === 2);
  assert.ok(sockets[1].at - sockets[0].at >= 195);
  session.close();
});

test('after 4401 it comes back with a new token', async () => {
  const { sockets, join } = fake((socket, count) => {
    if (count > 1) return socket.open();
    socket.onopen({});
    socket.say('ERROR_MESSAGE', { code: 'SESSION_EXPIRED', message: 'expired', recoverable: false });
    return socket.end(4401);
  }, { refresh: () => 'token-1' });
  const session = await join();
  await session.ready;
  assert.deepEqual(sockets.map(({ token }) => token), ['token-0', 'token-1']);
  session.close();
});

test('fresh tokens that are all refused end it', async () => {
  let count = 0;
  const { sockets, join } = fake((socket) => socket.end(4401), { refresh: () => `token-${(count += 1)}` });
  const session = await join();
  await assert.rejects(session.ready, { code: 'AUTH_FAILED' });
  assert.ok(sockets.length <= 4, `${sockets.length} tries`);
  assert.equal(new Set(sockets.map(({ token }) => token)).size, sockets.length, 'no token was tried twice');
});

test('a refresh that cannot be made now is made later', async () => {
  let count = 0;
  const { sockets, join } = fake((socket, tries) => (tries > 1 ? socket.open() : socket.end(4401)), {
    refresh: () => ((count += 1) < 3 ? new Response('', { status: 503 }) : 'token-1'),
  });
  const session = await join();
  await session.ready;
  assert.deepEqual([count, sockets.length], [3, 2]);
  session.close();
});

test('after 1009 what was being sent is not sent again', async () => {
  const { sockets, join } = fake((socket, count) => {
    socket.open();
    socket.hear = () => (count === 1 ? socket.end(1009, 'frame too large') : undefined);
  });
  const session = await join();
  await assert.rejects(session.prompt('big'), { code: 'VALIDATION_ERROR', status: 1009 });
  await until('it is back', () => sockets.length === 2 && session.status === 'open');
  assert.deepEqual(sockets[1].sent, []);
  session.close();
});

test('a lost line is tried again, waiting longer each time', async () => {
  const { sockets, join } = fake((socket) => socket.end(1006));
  const session = await join({ backoff: { baseMs: 20, maxMs: 160, random: () => 1 } });
  await until('some tries', () => sockets.length === 6);
  session.close();
  const waits = sockets.slice(1).map(({ at }, place) => at - sockets[place].at);
  for (const [place, wait] of [20, 40, 80, 160, 160].entries()) assert.ok(waits[place] >= wait - 5, `${waits}`);
  await sleep(200);
  assert.equal(sockets.length, 6, 'and not any more once it was left');
});

test('waits double up to a bound, with chance in them', () => {
  const low = new Backoff({ random: () => 0 });
  const high = new Backoff({ random: () => 1 });
  assert.deepEqual([low.next(), low.next(), low.next()], [125, 250, 500]);
  assert.deepEqual([high.next(), high.next()], [250, 500]);
  for (let count = 0; count < 2000; count += 1) assert.ok(high.next() <= 30_000);
  high.reset();
  assert.equal(high.next(), 250);
  assert.equal(verdict({ code: 4408, reason: '' }), 'retry');
});

test('a command is sent again on the next line, the same under the same key', async () => {
  const { sockets, join } = fake((socket, count) => {
    socket.open();
    socket.hear = ({ messageId }) => (count === 1 ? socket.end(1006) : socket.say('ACK', { taskId: 'run_1', repeated: true }, { messageId }));
  });
  const session = await join();
  assert.equal((await session.prompt('hello')).taskId, 'run_1');
  assert.deepEqual(sockets[0].sent, sockets[1].sent);
  assert.ok(sockets[0].sent[0].idempotencyKey);
  session.close();
});

test('what was refused for haste or for a lack of storage is said again', async () => {
  const { sockets, join } = fake((socket) => {
    socket.open();
    let count = 0;
    socket.hear = ({ messageId }) => {
      count += 1;
      if (count === 1) socket.say('ERROR_MESSAGE', { code: 'RATE_LIMITED', message: '', recoverable: true, details: { retryAfterMs: 50 } });
      else if (count === 2) socket.say('ERROR_MESSAGE', { code: 'STORAGE_UNAVAILABLE', message: '', recoverable: true }, { messageId });
      else socket.say('ACK', { taskId: 'run_1' }, { messageId });
    };
  });
  const session = await join();
  assert.equal((await session.prompt('hello')).taskId, 'run_1');
  assert.equal(new Set(sockets[0].sent.map((command) => JSON.stringify(command))).size, 1);
  session.close();
});

test('a line that dies without a word is noticed', async () => {
  const { sockets, join } = fake((socket) => socket.open({ heartbeatSeconds: 0.1 }));
  const session = await join({ patienceMs: 200 });
  const { lost } = record(session);
  await until('it is back', () => sockets.length === 2, 3000);
  assert.equal(lost[0].reason, 'no sign of life');
  assert.equal(sockets[0].sent[0].type, 'HEARTBEAT');
  session.close();
});

test('a line that answers heartbeats stays', async () => {
  const { sockets, join } = fake((socket) => {
    socket.open({ heartbeatSeconds: 0.1 });
    socket.hear = () => socket.say('HEARTBEAT', {});
  });
  const session = await join({ patienceMs: 200 });
  await sleep(1000);
  assert.equal(sockets.length, 1);
  assert.ok(sockets[0].sent.length >= 3);
  session.close();
});

test('known events are passed over, and a hole is mended with the state', async () => {
  const title = (socket, offset) => socket.say('TITLE_UPDATE', { title: `${offset}` }, { offset });
  const state = { epoch: 'epo_1', offset: 5, conversationHistory: [], tools: [], questions: [], queue: [], plan: [], commands: [], capabilities: [], title: '5' };
  const { sockets, join } = fake((socket, count) => {
    if (count === 1) {
      socket.open();
      for (const offset of [1, 2, 2, 1, 3, 5]) title(socket, offset);
    } else {
      socket.open({ resume: 'snapshot', offset: 5 });
      socket.say('FULL_STATE', state);
      title(socket, 6);
    }
  });
  const session = await join();
  const heard = record(session);
  await until('the state', () => session.store.view.title === '6');
  assert.deepEqual(heard.events.map(({ offset }) => offset), [1, 2, 3, 6]);
  assert.deepEqual(sockets.map(({ url }) => url.searchParams.get('epoch')), [null, 'none']);
  assert.deepEqual(session.cursor, { epoch: 'epo_1', offset: 6 });
  session.close();
});

test('what was said before a state came is answered after it', async () => {
  const state = { epoch: 'epo_2', offset: 9, conversationHistory: [], tools: [], questions: [], queue: [], plan: [], commands: [], capabilities: [] };
  const { sockets, join } = fake((socket, count) => {
    if (count === 1) return socket.end(1006);
    socket.open({ resume: 'snapshot', epoch: 'epo_2', offset: 9 });
    assert.deepEqual(socket.sent, []);
    socket.hear = ({ messageId }) => socket.say('TASK_STATUS_UPDATE', { taskId: 'run_1', status: 'starting', prompt: { text: 'hello' }, userMessageId: 'msg_1' }, { offset: 10, messageId });
    return socket.say('FULL_STATE', state);
  });
  const session = await join();
  assert.equal((await session.prompt('hello')).taskId, 'run_1');
  assert.equal(sockets.length, 2);
  session.close();
});
