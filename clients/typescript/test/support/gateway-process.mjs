// Gateway process: the real gateway with a fresh data directory, and helpers to observe its sessions.
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

/** Every process started here is killed when the test file exits. */
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
  /** Closed at the end, also after a failed test, or the test process would wait for them. */
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

  /** Starts the program, or restarts it on the same port and data. */
  async run() {
    const child = spawn(program, ['--data-dir', this.data, '--listen', `127.0.0.1:${this.port}`], {
      cwd: this.data, env: this.env, stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child = child;
    this.stderr = '';
    child.stderr.on('data', (chunk) => (this.stderr = (this.stderr + chunk).slice(-4000)));
    running.add(child);
    for (const end = Date.now() + 20_000; Date.now() < end; await sleep(20)) {
      if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}: ${this.stderr}`);
      if (await fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false)) return;
    }
    throw new Error(`the gateway does not start: ${this.stderr}`);
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

  /** Logs in, by default directly; `url` may be a proxy. */
  async login(url = this.url, [name, password] = admin) {
    const account = await new Gateway(url, { WebSocket }).login(name, password);
    const join = account.join.bind(account);
    account.join = (...options) => {
      const session = join(...options);
      this.sessions.push(session);
      return session;
    };
    return account;
  }
}

/** The whole journal of a session, read over HTTP. */
export async function journal(account, id) {
  const events = [];
  for (;;) {
    const after = events.at(-1)?.offset ?? 0;
    const { base } = account.login.endpoint;
    const answer = await fetch(`${base}/api/sessions/${id}/events?after=${after}&limit=1000`, {
      headers: { Authorization: `Bearer ${account.login.token}` },
    });
    const lines = (await answer.text()).split('\n').filter(Boolean);
    if (lines.length === 0) return events;
    events.push(...lines.map((line) => JSON.parse(line)));
  }
}

/** Waits until a condition holds. */
export async function waitFor(what, condition, ms = 15_000) {
  for (const end = Date.now() + ms; ; await sleep(5)) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
  }
}

/** Records what a session emits. */
export function record(session) {
  const recorded = { events: [], snapshots: [], lost: [], opened: 0 };
  session.on('event', (event) => recorded.events.push(event));
  session.on('snapshot', (state) => recorded.snapshots.push(state));
  session.on('lost', (end) => recorded.lost.push(end));
  session.on('open', () => (recorded.opened += 1));
  return recorded;
}

/** The text of each message, regardless of how it was split into chunks. */
export function texts(events) {
  const texts = new Map();
  for (const { type, payload } of events) {
    if (type !== 'TASK_OUTPUT_CHUNK') continue;
    const id = `${payload.messageId} ${payload.channel}`;
    texts.set(id, (texts.get(id) ?? '') + payload.content);
  }
  return Object.fromEntries(texts);
}

/** Whether the offsets are complete, unique and in order. */
export function hasAllOffsets(events, after = 0) {
  let last = after;
  for (const { offset, payload } of events) {
    if ((payload.fromOffset ?? offset) !== last + 1) return false;
    last = offset;
  }
  return true;
}
