// Faulty proxy: cuts connections, slows them down, or refuses WebSockets.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export class Proxy {
  static async start() {
    const proxy = new Proxy();
    proxy.target = 0;
    proxy.connections = 0;
    proxy.cuts = 0;
    proxy.upgrades = 0;
    /** How many bytes the next connection may carry, both directions together. */
    proxy.budget = () => Infinity;
    proxy.bytesPerSecond = Infinity;
    proxy.refusesUpgrades = false;
    proxy.open = new Set();
    proxy.server = createServer((client) => proxy.#serve(client)).listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  /** Cuts every open connection. */
  cutAll() {
    for (const cut of [...this.open]) cut();
  }

  async stop() {
    this.server.close();
    this.cutAll();
  }

  #serve(client) {
    this.connections += 1;
    let remaining = this.budget();
    const server = connect(this.target, '127.0.0.1');
    let isClosed = false;
    const end = () => {
      if (isClosed) return;
      isClosed = true;
      this.open.delete(cut);
      client.destroy();
      server.destroy();
    };
    const cut = () => {
      if (!isClosed) this.cuts += 1;
      end();
    };
    this.open.add(cut);
    const pass = async (from, to, isUpstream) => {
      let isFirst = true;
      for await (let chunk of from) {
        if (isFirst && isUpstream) {
          isFirst = false;
          if (/upgrade: websocket/i.test(chunk.toString('latin1'))) {
            this.upgrades += 1;
            if (this.refusesUpgrades) {
              client.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
              return end;
            }
          }
        }
        const isCutHere = chunk.length >= remaining;
        if (isCutHere) chunk = chunk.subarray(0, remaining);
        remaining -= chunk.length;
        await this.#write(to, chunk);
        if (isCutHere) {
          // Lets the forwarded bytes arrive first, so that cuts fall at any byte.
          await sleep(1);
          return cut();
        }
      }
      to.end();
    };
    client.on('error', end).on('close', end);
    server.on('error', end).on('close', end);
    pass(client, server, true).catch(end);
    pass(server, client, false).catch(end);
  }

  async #write(to, chunk) {
    if (this.bytesPerSecond === Infinity) {
      if (!to.write(chunk)) await once(to, 'drain');
      return;
    }
    const step = Math.max(1, Math.floor(this.bytesPerSecond / 50));
    for (let start = 0; start < chunk.length && !to.destroyed; start += step) {
      to.write(chunk.subarray(start, start + step));
      await sleep(20);
    }
  }
}
