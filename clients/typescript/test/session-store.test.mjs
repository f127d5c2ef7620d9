// Session store: folding events gives the same state as the gateway.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { emptyView, fold, GATEWAY_BOUNDS, stateOf, viewOf } from '../dist/index.js';
import { GatewayProcess, record, waitFor } from './support/gateway-process.mjs';

let gateway;
before(async () => (gateway = await GatewayProcess.start()));
after(() => gateway?.stop());

/** At most `max` items, evenly spread. */
const sample = (list, max) => list.filter((_, index) => index % Math.ceil(list.length / max) === 0);

/**
 * Plays a session while requesting its state repeatedly, then checks that folding the events gives each of
 * these states.
 */
async function compare(play) {
  const account = await gateway.login();
  const session = await account.open({}, { from: 'start' });
  const recorded = record(session);
  await session.ready;
  const states = [];
  let isPlaying = true;
  const polling = (async () => {
    while (isPlaying) states.push(await session.send('REQUEST_STATE', {}));
  })();
  await play(session, account);
  isPlaying = false;
  await polling;
  states.push(await session.send('REQUEST_STATE', {}));
  const last = states.at(-1);
  await waitFor('all events', () => session.store.view.offset >= last.offset);
  assert.deepEqual(session.store.state, last);
  assert.deepEqual(recorded.snapshots, []);
  const offsets = new Set(recorded.events.map((event) => event.offset));
  // Within merged chunks there is no folded state to compare with.
  const comparable = sample(states.filter(({ offset }) => offset === 0 || offsets.has(offset)), 60);
  let view = emptyView(last.epoch);
  let next = 0;
  for (const state of comparable) {
    while (view.offset < state.offset) view = fold(view, recorded.events[next++]);
    const { capabilities } = state;
    assert.deepEqual(stateOf({ ...view, capabilities }), state, `at ${state.offset}`);
  }
  // Starting from any state and folding the rest gives the same result.
  for (const state of sample(comparable, 10)) {
    const later = recorded.events.filter((event) => event.offset > state.offset);
    const transient = { presence: [], control: undefined };
    const resumed = later.reduce((view, event) => fold(view, event), viewOf(state, GATEWAY_BOUNDS, transient));
    assert.deepEqual(stateOf(resumed), last, `from ${state.offset}`);
  }
  const compared = new Set(comparable.map(({ offset }) => offset)).size;
  session.close();
  return { view: session.store.view, compared, kinds: new Set(recorded.events.map((event) => event.type)) };
}

async function answerNext(session, answerTo) {
  const question = await waitFor('a question', () => session.store.view.questions[0]);
  return session.answer(question.questionId, answerTo(question));
}

test('the store matches the gateway: a stream, a plan, thoughts, usage, a title and commands', async () => {
  const { view, compared, kinds } = await compare(async (session) => {
    for (const prompt of ['/stream 40 2', '/plan', '/think', '/usage', '/title A title', '/commands', '/image', 'Hello', '/fail']) {
      await session.ask(prompt);
    }
  });
  assert.ok(compared > 10, `${compared} states`);
  assert.equal(view.title, 'A title');
  assert.equal(view.plan.length, 3);
  assert.ok(view.commands.length > 0);
  assert.deepEqual([view.contextLeftPercent, view.tokenUsage.cost], [93, 0.0125]);
  assert.equal(view.currentTask.status, 'error');
  assert.ok(kinds.has('USAGE_UPDATE') && kinds.has('PLAN_UPDATE'));
});

test('thoughts are in the view while their run goes on', async () => {
  const account = await gateway.login();
  const session = await account.open();
  await session.ask('/think');
  assert.match(session.store.view.thoughts[0].content, /I think in pieces, like this\./);
  session.close();
});

test('the store matches the gateway: tools, and questions answered, declined and cancelled', async () => {
  const { view, kinds } = await compare(async (session) => {
    for (const [prompt, answerTo] of [
      ['/tool', () => ({ ok: true })],
      ['/tool', () => ({ ok: false })],
      ['/confirm', () => ({ ok: true })],
      ['/prompt', () => ({ value: 'blue' })],
      ['/pick', ({ options }) => ({ ids: [options[0].id] })],
    ]) {
      const { taskId } = await session.prompt(prompt);
      await answerNext(session, answerTo);
      await session.end(taskId);
    }
    const { taskId } = await session.prompt('/tool');
    await waitFor('a question', () => session.store.view.questions.length);
    await session.cancel();
    assert.equal((await session.end(taskId)).status, 'cancelled');
  });
  assert.deepEqual(view.questions, []);
  assert.ok(kinds.has('TOOL_UPDATE') && kinds.has('QUESTION') && kinds.has('QUESTION_RESOLVED'));
});

test('the store matches the gateway: cancelling, the queue, steering and settings', async () => {
  const { view } = await compare(async (session) => {
    await session.send('SET_QUEUE_MODE', { followUp: 'all' });
    const running = await session.prompt('/stream 1000 5');
    const queued = await session.prompt('/echo waits');
    assert.equal(queued.queued, true);
    const withdrawn = await session.prompt('/echo never');
    await session.send('FOLLOW_UP', { text: '/echo one' });
    await session.send('FOLLOW_UP', { text: '/echo two' });
    await session.send('STEER', { text: 'look here' });
    await session.send('WITHDRAW', { taskId: withdrawn.taskId });
    assert.equal((await session.end(withdrawn.taskId)).status, 'cancelled');
    await session.send('UPDATE_SETTINGS', { settings: { temperature: 0.5, autoApprove: true } });
    await session.cancel(running.taskId);
    assert.equal((await session.end(running.taskId)).status, 'cancelled');
    await session.end(queued.taskId);
    await waitFor('the queue is empty', () => session.store.view.queue.length === 0 && session.store.view.currentTask.status !== 'running');
    await session.ask('/tool');
  });
  assert.equal(view.settings.temperature, 0.5);
});

test('the store matches the gateway: more messages and text than a state holds', async () => {
  const { view } = await compare(async (session) => {
    for (let count = 0; count < 110; count += 1) await session.ask(`/echo ${count} äöü€😀`);
    assert.equal(session.store.view.messages.length, 200);
    await session.ask('/chunks 8 90000');
    await session.ask('/echo after');
  });
  assert.equal(view.historyTruncated, true);
});

test('the store matches the gateway: a single answer longer than a state holds', async () => {
  const { view } = await compare(async (session) => {
    await session.ask('/chunks 70 10000');
    assert.equal(session.store.view.textBytes, GATEWAY_BOUNDS.bytes);
  });
  assert.equal(view.historyTruncated, true);
});
