// A line that can be bad: cut, slow, or closed to WebSockets.
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
    /** How many bytes the next connection lives for, both ways together. */
    proxy.budget = () => Infinity;
    proxy.bytesPerSecond = Infinity;
    proxy.refusesUpgrades = false;
    proxy.open = new Set();
    proxy.server = createServer((client) => proxy.#serve(client)).listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  /** Cuts everything that is open now. */
  cutAll() {
    for (const cut of [...this.open]) cut();
  }

  async stop() {
    this.server.close();
    this.cutAll();
  }

  #serve(client) {
    this.connections += 1;
    let left = this.budget();
    const server = connect(this.target, '127.0.0.1');
    let gone = false;
    const end = () => {
      if (gone) return;
      gone = true;
      this.open.delete(cut);
      client.destroy();
      server.destroy();
    };
    const cut = () => {
      if (!gone) this.cuts += 1;
      end();
    };
    this.open.add(cut);
    const pass = async (from, to, isUpstream) => {
      let head = true;
      for await (let piece of from) {
        if (head && isUpstream) {
          head = false;
          if (/upgrade: websocket/i.test(piece.toString('latin1'))) {
            this.upgrades += 1;
            if (this.refusesUpgrades) {
              client.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
              return end;
            }
          }
        }
        const cutHere = piece.length >= left;
        if (cutHere) piece = piece.subarray(0, left);
        left -= piece.length;
        await this.#write(to, piece);
        if (cutHere) {
          // Let what was passed on arrive, so that cuts fall everywhere.
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

  async #write(to, piece) {
    if (this.bytesPerSecond === Infinity) {
      if (!to.write(piece)) await once(to, 'drain');
      return;
    }
    const step = Math.max(1, Math.floor(this.bytesPerSecond / 50));
    for (let place = 0; place < piece.length && !to.destroyed; place += step) {
      to.write(piece.subarray(place, place + step));
      await sleep(20);
    }
  }
}
