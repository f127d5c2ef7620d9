// Lines that are cut at random bytes. CUTS says how many cuts there are in each test (50).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Gateway } from '../dist/index.js';
import { GatewayProcess, WebSocket, isWithoutHoles, journal, record, texts } from './stage/gateway.mjs';
import { Proxy } from './stage/proxy.mjs';

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

/** From the first byte of a handshake to long after it; mostly where the talk is. */
function anywhere() {
  const most = Math.random() < 0.3 ? 1500 : 12_000;
  return 1 + Math.floor(Math.random() * most);
}

for (const transport of ['socket', 'stream', 'auto']) {
  test(`${CUTS} cuts of a ${transport} line lose, double and reorder nothing`, { timeout: 30_000 + CUTS * 500 }, async (context) => {
    // Made beside the proxy: only lines of the session are to be cut.
    const direct = await gateway.login();
    const { id } = await direct.request('POST', '/api/sessions', {});
    const session = new Gateway(proxy.url, { WebSocket }).use(direct.login.token).join(id, { transport, from: 'start', backoff: { baseMs: 2, maxMs: 20 } });
    const heard = record(session);
    const before = proxy.cuts;
    proxy.budget = anywhere;
    const said = [];
    const endings = [];
    for (let count = 0; proxy.cuts - before < CUTS; count += 1) {
      // Several at once: order has to be kept too.
      const texts = [`/stream 40 1`, `/echo ${count}.1`, `/echo ${count}.2`];
      said.push(...texts);
      const done = await Promise.all(texts.map((text) => session.prompt(text)));
      endings.push(...(await Promise.all(done.map(({ taskId }) => session.end(taskId)))));
    }
    const cuts = proxy.cuts - before;
    proxy.budget = () => Infinity;
    const state = await session.send('REQUEST_STATE', {});
    const kept = await journal(direct, id);
    const begun = kept.filter(({ payload }) => payload.status === 'starting').map(({ payload }) => payload.prompt.text);
    assert.deepEqual(begun, said, 'every prompt took effect once, in order');
    assert.deepEqual(session.store.state, state);
    assert.ok(endings.every(({ status }) => status === 'completed' || (heard.snapshots.length > 0 && status === 'unknown')));
    if (heard.snapshots.length === 0) {
      assert.ok(isWithoutHoles(heard.events));
      assert.equal(heard.events.at(-1).offset, kept.at(-1).offset);
      assert.deepEqual(texts(heard.events), texts(kept));
      const others = (events) => events.filter(({ type }) => type !== 'TASK_OUTPUT_CHUNK');
      assert.deepEqual(others(heard.events), others(kept));
    }
    context.diagnostic(`${cuts} cuts, ${heard.opened} lines acknowledged, ${said.length} prompts, ${kept.at(-1).offset} events, ${heard.snapshots.length} snapshots`);
    session.close();
  });
}
