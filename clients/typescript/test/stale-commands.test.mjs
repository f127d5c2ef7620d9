// What was sent long ago: the gateway may have forgotten its key, so it must not be sent again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure, SEND_AGAIN_MS, newId } from '../dist/index.js';
import { fake } from './stage/fake.mjs';

const HOUR = 3_600_000;

/** A clock that is put forward while the timers go on as ever: a computer that sleeps. */
function sleeper(context) {
  const now = Date.now;
  let asleep = 0;
  context.mock.method(Date, 'now', () => now() + asleep);
  return (ms) => (asleep += ms);
}

/** The first line hears everything and answers nothing; `second` plays the next one. */
function twoLines(second, { opened = {} } = {}) {
  let heard;
  const first = new Promise((resolve) => (heard = resolve));
  const played = fake((socket, count) => {
    if (count === 1) {
      socket.hear = (command) => command.type !== 'HEARTBEAT' && heard(socket);
      return socket.open();
    }
    socket.hear = (command) => second(socket, command);
    socket.open(opened);
  });
  return { ...played, first };
}

const kinds = ({ sent }) => sent.map(({ type }) => type).filter((type) => type !== 'HEARTBEAT');
const answer = (socket, { messageId }) => socket.say('ACK', { taskId: 'run_1' }, { messageId });

test('a prompt that was sent before a weekend is not sent again, and fails with what to do', async (context) => {
  const sleep = sleeper(context);
  const { join, first, sockets } = twoLines(answer);
  const session = await join();
  const prompted = session.prompt('once');
  const failing = assert.rejects(prompted, (failure) => {
    assert.ok(failure instanceof Failure);
    assert.equal(failure.code, 'CONNECTION_LOST');
    assert.match(failure.message, /not sent again/);
    assert.equal(failure.details.type, 'SUBMIT_PROMPT');
    return true;
  });
  const line = await first;
  sleep(60 * HOUR);
  line.end(1006);
  await failing;
  // The session itself goes on.
  assert.deepEqual(await session.prompt('anew'), { taskId: 'run_1' });
  assert.deepEqual(kinds(sockets[1]), ['SUBMIT_PROMPT']);
  assert.equal(sockets[1].sent.find(({ type }) => type === 'SUBMIT_PROMPT').payload.text, 'anew');
});

test('within twelve hours it is sent again under the same key', async (context) => {
  const sleep = sleeper(context);
  const { join, first, sockets } = twoLines(answer);
  const session = await join();
  const prompted = session.prompt('once');
  const line = await first;
  sleep(SEND_AGAIN_MS - HOUR);
  line.end(1006);
  assert.deepEqual(await prompted, { taskId: 'run_1' });
  const [before, after] = sockets.map(({ sent }) => sent.find(({ type }) => type === 'SUBMIT_PROMPT'));
  assert.equal(before.idempotencyKey, after.idempotencyKey);
});

test('what never left goes out however late, as do commands without a key', async (context) => {
  const sleep = sleeper(context);
  const { join, first, sockets } = twoLines(answer);
  const session = await join();
  const cancelled = session.cancel('run_1');
  const line = await first;
  line.end(1006);
  const unsent = session.prompt('first');
  sleep(60 * HOUR);
  assert.deepEqual(await unsent, { taskId: 'run_1' });
  assert.deepEqual(await cancelled, { taskId: 'run_1' });
  assert.deepEqual(kinds(sockets[1]), ['CANCEL_TASK', 'SUBMIT_PROMPT']);
});

test('an old prompt whose answer is in what was missed has arrived', async (context) => {
  const sleep = sleeper(context);
  const { join, first, sockets } = twoLines(answer, { opened: { offset: 1 } });
  const session = await join();
  const prompted = session.prompt('once');
  const line = await first;
  const { messageId } = line.sent.find(({ type }) => type === 'SUBMIT_PROMPT');
  session.on('open', () => {
    const status = { taskId: 'run_7', status: 'starting', prompt: { text: 'once', mode: 'act' } };
    const more = { sessionId: 'ses_1', offset: 1, epoch: 'epo_1', messageId };
    queueMicrotask(() => sockets.at(-1).say('TASK_STATUS_UPDATE', status, more));
  });
  sleep(60 * HOUR);
  line.end(1006);
  assert.deepEqual(await prompted, { taskId: 'run_7' });
  assert.deepEqual(kinds(sockets[1]), []);
});

test('an old prompt fails also if a state comes in the place of what was missed', async (context) => {
  const sleep = sleeper(context);
  const { join, first, sockets } = twoLines(answer, { opened: { epoch: 'epo_2', offset: 9, resume: 'snapshot' } });
  const session = await join();
  const state = { ...session.store.state, epoch: 'epo_2', offset: 9 };
  const failing = assert.rejects(session.prompt('once'), { code: 'CONNECTION_LOST' });
  const line = await first;
  session.on('open', () => queueMicrotask(() => sockets.at(-1).say('FULL_STATE', state)));
  sleep(60 * HOUR);
  line.end(1006);
  await failing;
  assert.deepEqual(kinds(sockets[1]), []);
});

test('new ids are all different', () => {
  const ids = new Set(Array.from({ length: 1000 }, newId));
  assert.equal(ids.size, 1000);
  assert.match(newId(), /^[0-9a-f]{32}$/);
});
