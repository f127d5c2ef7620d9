import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { emptyView, fold, GATEWAY_BOUNDS, stateOf, viewOf } from '../dist/index.js';
import { GatewayProcess, record, until } from './stage/gateway.mjs';

let gateway;
before(async () => (gateway = await GatewayProcess.start()));
after(() => gateway?.stop());

/** At most so many of them, spread evenly. */
const sample = (list, most) => list.filter((_, place) => place % Math.ceil(list.length / most) === 0);

/** Plays a session and asks for the state again and again; then every state must be what folding gives. */
async function compare(play) {
  const account = await gateway.login();
  const session = await account.open({}, { from: 'start' });
  const heard = record(session);
  await session.ready;
  const states = [];
  let playing = true;
  const asking = (async () => {
    while (playing) states.push(await session.send('REQUEST_STATE', {}));
  })();
  await play(session, account);
  playing = false;
  await asking;
  states.push(await session.send('REQUEST_STATE', {}));
  const last = states.at(-1);
  await until('all events', () => session.store.view.offset >= last.offset);
  assert.deepEqual(session.store.state, last);
  assert.deepEqual(heard.snapshots, []);
  const offsets = new Set(heard.events.map((event) => event.offset));
  // In the middle of joined chunks there is nothing to compare with.
  const comparable = sample(states.filter(({ offset }) => offset === 0 || offsets.has(offset)), 60);
  let view = emptyView(last.epoch);
  let place = 0;
  for (const state of comparable) {
    while (view.offset < state.offset) view = fold(view, heard.events[place++]);
    const { capabilities } = state;
    assert.deepEqual(stateOf({ ...view, capabilities }), state, `at ${state.offset}`);
  }
  // Whoever begins with a state and goes on comes to the same.
  for (const state of sample(comparable, 10)) {
    const later = heard.events.filter((event) => event.offset > state.offset);
    const around = { presence: [], control: undefined };
    const resumed = later.reduce((view, event) => fold(view, event), viewOf(state, GATEWAY_BOUNDS, around));
    assert.deepEqual(stateOf(resumed), last, `from ${state.offset}`);
  }
  const compared = new Set(comparable.map(({ offset }) => offset)).size;
  session.close();
  return { view: session.store.view, compared, kinds: new Set(heard.events.map((event) => event.type)) };
}

async function answerNext(session, said) {
  const question = await until('a question', () => session.store.view.questions[0]);
  return session.answer(question.questionId, said(question));
}

test('a stream, a plan, thoughts, usage, a title and commands', async () => {
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

test('thoughts are shown while they are thought', async () => {
  const account = await gateway.login();
  const session = await account.open();
  await session.ask('/think');
  assert.match(session.store.view.thoughts[0].content, /I think in pieces, like this\./);
  session.close();
});

test('tools and questions, answered, declined and cancelled', async () => {
  const { view, kinds } = await compare(async (session) => {
    for (const [prompt, said] of [
      ['/tool', () => ({ ok: true })],
      ['/tool', () => ({ ok: false })],
      ['/confirm', () => ({ ok: true })],
      ['/prompt', () => ({ value: 'blue' })],
      ['/pick', ({ options }) => ({ ids: [options[0].id] })],
    ]) {
      const { taskId } = await session.prompt(prompt);
      await answerNext(session, said);
      await session.end(taskId);
    }
    const { taskId } = await session.prompt('/tool');
    await until('a question', () => session.store.view.questions.length);
    await session.cancel();
    assert.equal((await session.end(taskId)).status, 'cancelled');
  });
  assert.deepEqual(view.questions, []);
  assert.ok(kinds.has('TOOL_UPDATE') && kinds.has('QUESTION') && kinds.has('QUESTION_RESOLVED'));
});

test('cancelling, the queue, steering and settings', async () => {
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
    await until('the queue is empty', () => session.store.view.queue.length === 0 && session.store.view.currentTask.status !== 'running');
    await session.ask('/tool');
  });
  assert.equal(view.settings.temperature, 0.5);
});

test('more messages, and more text, than a state holds', async () => {
  const { view } = await compare(async (session) => {
    for (let count = 0; count < 110; count += 1) await session.ask(`/echo ${count} äöü€😀`);
    assert.equal(session.store.view.messages.length, 200);
    await session.ask('/chunks 8 90000');
    await session.ask('/echo after');
  });
  assert.equal(view.historyTruncated, true);
});

test('a single answer that is longer than a state holds', async () => {
  const { view } = await compare(async (session) => {
    await session.ask('/chunks 70 10000');
    assert.equal(session.store.view.textBytes, GATEWAY_BOUNDS.bytes);
  });
  assert.equal(view.historyTruncated, true);
});
