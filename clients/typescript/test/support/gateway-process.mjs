// The real gateway as a process of its own, with a fresh data directory.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from '/usr/share/nodejs/ws/wrapper.mjs';
import { Gateway } from '../../dist/index.js';

export { WebSocket };
export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
export const program = resolve(root, process.env.SWITCHBOARD_BIN ?? '../../target/debug/switchboard');
export const admin = ['admin', 'a long enough secret'];

/** Everything that was started in this file is ended with it. */
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export class GatewayProcess {
  /** Left at the end also by a test that failed, or its process would wait for them. */
  sessions = [];

  static async start({ publicUrl, env = {} } = {}) {
    if (!existsSync(program)) throw new Error(`${program} is missing: run cargo build, or set SWITCHBOARD_BIN`);
    const gateway = new GatewayProcess();
    gateway.port = await freePort();
    gateway.url = `http://127.0.0.1:${gateway.port}`;
    gateway.data = mkdtempSync(join(tmpdir(), 'switchboard-client-'));
    gateway.env = {
      PATH: process.env.PATH,
      SWITCHBOARD__ADMIN__USERNAME: admin[0],
      SWITCHBOARD__ADMIN__PASSWORD: admin[1],
      SWITCHBOARD__LIMITS__MESSAGES_PER_MINUTE: '100000',
      SWITCHBOARD__LIMITS__STATE_REQUESTS_PER_MINUTE: '100000',
      SWITCHBOARD__LIMITS__LOGINS_PER_MINUTE: '1000',
      ...(publicUrl ? { SWITCHBOARD__SERVER__PUBLIC_URL: publicUrl } : {}),
      ...env,
    };
    await gateway.run();
    return gateway;
  }

  /** Starts the program, also again after its end: same port, same data. */
  async run() {
    const child = spawn(program, ['--data-dir', this.data, '--listen', `127.0.0.1:${this.port}`], {
      cwd: this.data, env: this.env, stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child = child;
    this.said = '';
    child.stderr.on('data', (piece) => (this.said = (this.said + piece).slice(-4000)));
    running.add(child);
    for (const end = Date.now() + 20_000; Date.now() < end; await sleep(20)) {
      if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}: ${this.said}`);
      if (await fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false)) return;
    }
    throw new Error(`the gateway does not start: ${this.said}`);
  }

  async end(signal) {
    const { child } = this;
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, 'exit');
    }
    running.delete(child);
  }

  async stop() {
    this.sessions.forEach((session) => session.close());
    await this.end('SIGKILL');
    rmSync(this.data, { recursive: true, force: true });
  }

  /** Logged in, over `url` (a proxy's, say). */
  async login(url = this.url, [name, password] = admin) {
    const account = await new Gateway(url, { WebSocket }).login(name, password);
    const join = account.join.bind(account);
    account.join = (...given) => {
      const session = join(...given);
      this.sessions.push(session);
      return session;
    };
    return account;
  }
}

/** The whole journal of a session, as the gateway keeps it. */
export async function journal(account, id) {
  const events = [];
  for (;;) {
    const after = events.at(-1)?.offset ?? 0;
    const { base } = account.login.reach;
    const answer = await fetch(`${base}/api/sessions/${id}/events?after=${after}&limit=1000`, {
      headers: { Authorization: `Bearer ${account.login.token}` },
    });
    const lines = (await answer.text()).split('\n').filter(Boolean);
    if (lines.length === 0) return events;
    events.push(...lines.map((line) => JSON.parse(line)));
  }
}

/** Waits until something is so. */
export async function until(what, isSo, ms = 15_000) {
  for (const end = Date.now() + ms; ; await sleep(5)) {
    const found = await isSo();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
  }
}

/** Everything that a session tells, in order. */
export function record(session) {
  const heard = { events: [], snapshots: [], lost: [], opened: 0 };
  session.on('event', (event) => heard.events.push(event));
  session.on('snapshot', (state) => heard.snapshots.push(state));
  session.on('lost', (end) => heard.lost.push(end));
  session.on('open', () => (heard.opened += 1));
  return heard;
}

/** What was said in each utterance, however it was cut into frames. */
export function texts(events) {
  const said = new Map();
  for (const { type, payload } of events) {
    if (type !== 'TASK_OUTPUT_CHUNK') continue;
    const id = `${payload.messageId} ${payload.channel}`;
    said.set(id, (said.get(id) ?? '') + payload.content);
  }
  return Object.fromEntries(said);
}

/** Every offset once and in order, from the first to the last. */
export function isWithoutHoles(events, after = 0) {
  let last = after;
  for (const { offset, payload } of events) {
    if ((payload.fromOffset ?? offset) !== last + 1) return false;
    last = offset;
  }
  return true;
}
