// Development server: serves the page from source and proxies everything else to a gateway. `node
// dev-server.mjs [GATEWAY] [PORT]`.
//
// The page is bundled again on each reload. The gateway sees requests as if they came to its own address.
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { bundle } from './build.mjs';

const gateway = new URL(process.argv[2] ?? 'http://127.0.0.1:7717');
const port = Number(process.argv[3] ?? 7718);
const directory = join(tmpdir(), `switchboard-page-${port}`);
const CONTENT_TYPES = { js: 'text/javascript', css: 'text/css', html: 'text/html' };
const PAGES = new Set(['/', '/setup', '/invite']);
const ownOrigin = `http://127.0.0.1:${port}`;

/** Request headers as if the browser had connected to the gateway directly. */
const forwardedHeaders = (headers) => ({ ...headers, host: gateway.host, ...(headers.origin === ownOrigin ? { origin: gateway.origin } : {}) });

async function serve(url, response, policy) {
  const { pathname } = new URL(url, ownOrigin);
  if (PAGES.has(pathname)) await bundle(directory);
  const file = PAGES.has(pathname) ? 'index.html' : pathname;
  try {
    const contentType = CONTENT_TYPES[file.split('.').pop()] ?? 'application/octet-stream';
    response.writeHead(200, { 'Content-Type': `${contentType}; charset=utf-8`, 'Cache-Control': 'no-store', 'Content-Security-Policy': policy });
    response.end(readFileSync(join(directory, file)));
  } catch {
    response.writeHead(404).end();
  }
}

/** The content security policy that the gateway sends with its own page. */
const policy = () =>
  fetch(gateway).then((page) => page.headers.get('Content-Security-Policy') ?? '', () => '');

const server = createServer(async (incoming, response) => {
  const { pathname } = new URL(incoming.url, ownOrigin);
  if (incoming.method === 'GET' && (PAGES.has(pathname) || pathname.startsWith('/assets/'))) {
    return serve(incoming.url, response, await policy()).catch((error) => response.writeHead(500).end(String(error)));
  }
  const upstream = request(gateway, { method: incoming.method, path: incoming.url, headers: forwardedHeaders(incoming.headers) }, (upstreamResponse) => {
    response.writeHead(upstreamResponse.statusCode, upstreamResponse.headers);
    upstreamResponse.pipe(response);
  });
  upstream.on('error', () => response.writeHead(502).end('The gateway does not answer.'));
  response.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
});

server.on('upgrade', (incoming, socket, head) => {
  const upstream = connect(Number(gateway.port), gateway.hostname, () => {
    const headers = Object.entries(forwardedHeaders(incoming.headers)).map(([name, value]) => `${name}: ${value}\r\n`);
    upstream.write(`GET ${incoming.url} HTTP/1.1\r\n${headers.join('')}\r\n`);
    upstream.write(head);
    upstream.pipe(socket).pipe(upstream);
  });
  for (const [one, other] of [[upstream, socket], [socket, upstream]]) one.on('error', () => other.destroy());
});

server.listen(port, '127.0.0.1', () => console.log(`the page of ${gateway.origin} at ${ownOrigin}/`));
