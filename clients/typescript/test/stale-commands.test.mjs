// Stale commands: what was first sent too long ago is not resent, as the gateway may have forgotten its key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failure, newId, RESEND_LIMIT_MS } from '../dist/index.js';
import { fakeGateway } from './support/fake-gateway.mjs';

const HOUR = 3_600_000;

/** Moves the clock forward while timers keep running, like a computer that slept. */
function sleepableClock(context) {
  const now = Date.now;
  let asleep = 0;
  context.mock.method(Date, 'now', () => now() + asleep);
  return (ms) => (asleep += ms);
}

/** The first connection receives everything and answers nothing; `second` handles commands on the next. */
function twoConnections(second, { opened = {} } = {}) {
  let received;
  const first = new Promise((resolve) => (received = resolve));
  const gateway = fakeGateway((socket, count) => {
    if (count === 1) {
      socket.onCommand = (command) => command.type !== 'HEARTBEAT' && received(socket);
      return socket.open();
    }
    socket.onCommand = (command) => second(socket, command);
    socket.open(opened);
  });
  return { ...gateway, first };
}

const commandTypes = ({ sent }) => sent.map(({ type }) => type).filter((type) => type !== 'HEARTBEAT');
const answer = (socket, { messageId }) => socket.receive('ACK', { taskId: 'run_1' }, { messageId });

test('a prompt sent before the weekend is not resent and fails with advice', async (context) => {
  const sleep = sleepableClock(context);
  const { join, first, sockets } = twoConnections(answer);
  const session = await join();
  const prompted = session.prompt('once');
  const failing = assert.rejects(prompted, (failure) => {
    assert.ok(failure instanceof Failure);
    assert.equal(failure.code, 'CONNECTION_LOST');
    assert.match(failure.message, /not sent again/);
    assert.equal(failure.details.type, 'SUBMIT_PROMPT');
    return true;
  });
  const socket = await first;
  sleep(60 * HOUR);
  socket.closeFromServer(1006);
  await failing;
  // The session itself continues.
  assert.deepEqual(await session.prompt('anew'), { taskId: 'run_1' });
  assert.deepEqual(commandTypes(sockets[1]), ['SUBMIT_PROMPT']);
  assert.equal(sockets[1].sent.find(({ type }) => type === 'SUBMIT_PROMPT').payload.text, 'anew');
});

test('within twelve hours a prompt is resent under the same key', async (context) => {
  const sleep = sleepableClock(context);
  const { join, first, sockets } = twoConnections(answer);
  const session = await join();
  const prompted = session.prompt('once');
  const socket = await first;
  sleep(RESEND_LIMIT_MS - HOUR);
  socket.closeFromServer(1006);
  assert.deepEqual(await prompted, { taskId: 'run_1' });
  const [before, after] = sockets.map(({ sent }) => sent.find(({ type }) => type === 'SUBMIT_PROMPT'));
  assert.equal(before.idempotencyKey, after.idempotencyKey);
});

test('unsent prompts and keyless commands are sent however late', async (context) => {
  const sleep = sleepableClock(context);
  const { join, first, sockets } = twoConnections(answer);
  const session = await join();
  const cancelled = session.cancel('run_1');
  const socket = await first;
  socket.closeFromServer(1006);
  const unsent = session.prompt('first');
  sleep(60 * HOUR);
  assert.deepEqual(await unsent, { taskId: 'run_1' });
  assert.deepEqual(await cancelled, { taskId: 'run_1' });
  assert.deepEqual(commandTypes(sockets[1]), ['CANCEL_TASK', 'SUBMIT_PROMPT']);
});

test('an old prompt is resolved by its event among those that were missed', async (context) => {
  const sleep = sleepableClock(context);
  const { join, first, sockets } = twoConnections(answer, { opened: { offset: 1 } });
  const session = await join();
  const prompted = session.prompt('once');
  const socket = await first;
  const { messageId } = socket.sent.find(({ type }) => type === 'SUBMIT_PROMPT');
  session.on('open', () => {
    const status = { taskId: 'run_7', status: 'starting', prompt: { text: 'once', mode: 'act' } };
    const more = { sessionId: 'ses_1', offset: 1, epoch: 'epo_1', messageId };
    queueMicrotask(() => sockets.at(-1).receive('TASK_STATUS_UPDATE', status, more));
  });
  sleep(60 * HOUR);
  socket.closeFromServer(1006);
  assert.deepEqual(await prompted, { taskId: 'run_7' });
  assert.deepEqual(commandTypes(sockets[1]), []);
});

test('an old prompt fails if a state replaces the events that were missed', async (context) => {
  const sleep = sleepableClock(context);
  const { join, first, sockets } = twoConnections(answer, { opened: { epoch: 'epo_2', offset: 9, resume: 'snapshot' } });
  const session = await join();
  const state = { ...session.store.state, epoch: 'epo_2', offset: 9 };
  const failing = assert.rejects(session.prompt('once'), { code: 'CONNECTION_LOST' });
  const socket = await first;
  session.on('open', () => queueMicrotask(() => sockets.at(-1).receive('FULL_STATE', state)));
  sleep(60 * HOUR);
  socket.closeFromServer(1006);
  await failing;
  assert.deepEqual(commandTypes(sockets[1]), []);
});

test('new ids are unique', () => {
  const ids = new Set(Array.from({ length: 1000 }, newId));
  assert.equal(ids.size, 1000);
  assert.match(newId(), /^[0-9a-f]{32}$/);
});
