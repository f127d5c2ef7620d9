// Fake gateway: a scripted gateway behind a WebSocket class that is passed to the client.
import { after } from 'node:test';
import { Gateway } from '../../dist/index.js';

/** A client whose sockets the test controls. `play(socket, count)` is called for each socket that is opened. */
export function fakeGateway(play, { refresh } = {}) {
  const sockets = [];
  class FakeSocket {
    readyState = 0;
    sent = [];
    constructor(url, protocols) {
      Object.assign(this, { url: new URL(url), token: protocols[1].slice('bearer.'.length), at: Date.now() });
      sockets.push(this);
      setTimeout(() => play(this, sockets.length));
    }
    send(text) {
      const command = JSON.parse(text);
      this.sent.push(command);
      setTimeout(() => this.onCommand?.(command));
    }
    close() {
      this.readyState = 3;
    }
    /** Acknowledges the connection. */
    open(more = {}) {
      this.readyState = 1;
      this.onopen?.({});
      const limits = { messageBytes: 1_000_000 };
      const ack = { epoch: 'epo_1', offset: 0, resume: 'replayed', heartbeatSeconds: 25, capabilities: [], limits, connectionId: 'con_1', ...more };
      this.receive('CONNECTION_ACK', ack);
    }
    receive(type, payload, more = {}) {
      this.onmessage?.({ data: JSON.stringify({ type, payload, timestamp: '2026-01-01T00:00:00.000Z', ...more }) });
    }
    closeFromServer(code, reason = '') {
      this.readyState = 3;
      this.onclose?.({ code, reason });
    }
  }
  const fetchFunction = async (url) => {
    if (String(url).endsWith('/refresh') && !refresh) return Response.json({ code: 'AUTH_FAILED', detail: 'no' }, { status: 401 });
    const answer = String(url).endsWith('/refresh') ? await refresh() : 'token-0';
    return answer instanceof Response ? answer : Response.json({ token: answer, expiresAt: '', user: {} });
  };
  const gateway = new Gateway('http://fake.test', { WebSocket: FakeSocket, fetch: fetchFunction });
  const join = async (options = {}) => {
    const account = await gateway.login('user', 'password');
    const session = account.join('ses_1', { transport: 'socket', from: 'start', backoff: { baseMs: 10, maxMs: 40 }, ...options });
    // Also after a failed test, or its process would not exit.
    after(() => session.close());
    return session;
  };
  return { sockets, join };
}
