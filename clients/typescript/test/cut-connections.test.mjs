// Cut connections: nothing is lost, repeated or reordered. CUTS sets the cuts per test (50).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Gateway } from '../dist/index.js';
import { Proxy } from './support/faulty-proxy.mjs';
import { GatewayProcess, hasAllOffsets, journal, record, texts, WebSocket } from './support/gateway-process.mjs';

const CUTS = Number(process.env.CUTS ?? 50);
let gateway, proxy;
before(async () => {
  proxy = await Proxy.start();
  gateway = await GatewayProcess.start({ publicUrl: proxy.url });
  proxy.target = gateway.port;
});
after(async () => {
  await proxy.stop();
  await gateway?.stop();
});

/** From the first byte of the handshake to long after it, mostly in the middle of the conversation. */
function randomBudget() {
  const max = Math.random() < 0.3 ? 1500 : 12_000;
  return 1 + Math.floor(Math.random() * max);
}

for (const transport of ['socket', 'stream', 'auto']) {
  test(`${CUTS} cuts of a ${transport} lose, repeat and reorder nothing`, { timeout: 30_000 + CUTS * 500 }, async (context) => {
    // Not through the proxy: only the session's own connections are to be cut.
    const direct = await gateway.login();
    const { id } = await direct.request('POST', '/api/sessions', {});
    const session = new Gateway(proxy.url, { WebSocket }).use(direct.login.token).join(id, { transport, from: 'start', backoff: { baseMs: 2, maxMs: 20 } });
    const recorded = record(session);
    const before = proxy.cuts;
    proxy.budget = randomBudget;
    const prompts = [];
    const ends = [];
    for (let count = 0; proxy.cuts - before < CUTS; count += 1) {
      // Several at once, so that their order is tested too.
      const texts = [`/stream 40 1`, `/echo ${count}.1`, `/echo ${count}.2`];
      prompts.push(...texts);
      const done = await Promise.all(texts.map((text) => session.prompt(text)));
      ends.push(...(await Promise.all(done.map(({ taskId }) => session.end(taskId)))));
    }
    const cuts = proxy.cuts - before;
    proxy.budget = () => Infinity;
    const state = await session.send('REQUEST_STATE', {});
    const stored = await journal(direct, id);
    const started = stored.filter(({ payload }) => payload.status === 'starting').map(({ payload }) => payload.prompt.text);
    assert.deepEqual(started, prompts, 'every prompt took effect once, in order');
    assert.deepEqual(session.store.state, state);
    assert.ok(ends.every(({ status }) => status === 'completed' || (recorded.snapshots.length > 0 && status === 'unknown')));
    if (recorded.snapshots.length === 0) {
      assert.ok(hasAllOffsets(recorded.events));
      assert.equal(recorded.events.at(-1).offset, stored.at(-1).offset);
      assert.deepEqual(texts(recorded.events), texts(stored));
      const withoutChunks = (events) => events.filter(({ type }) => type !== 'TASK_OUTPUT_CHUNK');
      assert.deepEqual(withoutChunks(recorded.events), withoutChunks(stored));
    }
    context.diagnostic(`${cuts} cuts, ${recorded.opened} connections acknowledged, ${prompts.length} prompts, ${stored.at(-1).offset} events, ${recorded.snapshots.length} snapshots`);
    session.close();
  });
}
