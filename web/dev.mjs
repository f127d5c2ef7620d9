// Serves the page as it is now and hands everything else on to a gateway: `node dev.mjs [GATEWAY] [PORT]`.
//
// The page is bundled again at each reload. To the gateway it looks as if the browser had come to its
// own address.
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { bundle } from './build.mjs';

const gateway = new URL(process.argv[2] ?? 'http://127.0.0.1:7717');
const port = Number(process.argv[3] ?? 7718);
const directory = join(tmpdir(), `switchboard-page-${port}`);
const KINDS = { js: 'text/javascript', css: 'text/css', html: 'text/html' };
const PAGES = new Set(['/', '/setup', '/invite']);
const ours = `http://127.0.0.1:${port}`;

/** The headers of a request as the gateway would see them without us. */
const passed = (headers) => ({ ...headers, host: gateway.host, ...(headers.origin === ours ? { origin: gateway.origin } : {}) });

async function serve(url, answer, policy) {
  const { pathname } = new URL(url, ours);
  if (PAGES.has(pathname)) await bundle(directory);
  const file = PAGES.has(pathname) ? 'index.html' : pathname;
  try {
    const kind = KINDS[file.split('.').pop()] ?? 'application/octet-stream';
    answer.writeHead(200, { 'Content-Type': `${kind}; charset=utf-8`, 'Cache-Control': 'no-store', 'Content-Security-Policy': policy });
    answer.end(readFileSync(join(directory, file)));
  } catch {
    answer.writeHead(404).end();
  }
}

/** The policy that the gateway itself would send with the page. */
const policy = () =>
  fetch(gateway).then((response) => response.headers.get('Content-Security-Policy') ?? '', () => '');

const server = createServer(async (asked, answer) => {
  const { pathname } = new URL(asked.url, ours);
  if (asked.method === 'GET' && (PAGES.has(pathname) || pathname.startsWith('/assets/'))) {
    return serve(asked.url, answer, await policy()).catch((error) => answer.writeHead(500).end(String(error)));
  }
  const on = request(gateway, { method: asked.method, path: asked.url, headers: passed(asked.headers) }, (heard) => {
    answer.writeHead(heard.statusCode, heard.headers);
    heard.pipe(answer);
  });
  on.on('error', () => answer.writeHead(502).end('The gateway does not answer.'));
  answer.on('close', () => on.destroy());
  asked.pipe(on);
});

server.on('upgrade', (asked, socket, first) => {
  const on = connect(Number(gateway.port), gateway.hostname, () => {
    const headers = Object.entries(passed(asked.headers)).map(([name, value]) => `${name}: ${value}\r\n`);
    on.write(`GET ${asked.url} HTTP/1.1\r\n${headers.join('')}\r\n`);
    on.write(first);
    on.pipe(socket).pipe(on);
  });
  for (const [one, other] of [[on, socket], [socket, on]]) one.on('error', () => other.destroy());
});

server.listen(port, '127.0.0.1', () => console.log(`the page of ${gateway.origin} at ${ours}/`));
