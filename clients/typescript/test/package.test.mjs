// Package: the README example, no dependencies, a portable lock file.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { admin, GatewayProcess, root } from './support/gateway-process.mjs';

let gateway;
before(async () => (gateway = await GatewayProcess.start()));
after(() => gateway?.stop());

test('the example in the README runs', () => {
  const [, example] = /```js\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'));
  const text = example
    .replace("'@switchboard/client'", "'../dist/index.js'")
    .replace("'ws'", "'/usr/share/nodejs/ws/wrapper.mjs'")
    .replace('http://127.0.0.1:7717', gateway.url)
    .replace('the password you chose', admin[1]);
  const file = join(root, 'test', 'example-of-the-readme.mjs');
  writeFileSync(file, text);
  try {
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], { timeout: 20_000 });
    assert.equal(status, 0, stderr.toString());
    assert.equal(stdout.toString().trim().split('\n').at(-1), 'completed 1 2 3');
  } finally {
    rmSync(file);
  }
});

test('the client has no dependencies', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.equal(dependencies, undefined);
  const files = readdirSync(join(root, 'dist'), { recursive: true }).filter((name) => name.endsWith('.js'));
  assert.ok(files.length > 15);
  for (const name of files) {
    const text = readFileSync(join(root, 'dist', name), 'utf8');
    for (const [, from] of text.matchAll(/(?:from|import)\s*\(?['"]([^'"]+)['"]/g)) assert.match(from, /^\.\.?\//, `${name} imports ${from}`);
    assert.doesNotMatch(text, /\b(process|Buffer|require)\b[.(]/, name);
  }
});

test('the lock file names no host', () => {
  assert.doesNotMatch(readFileSync(join(root, 'package-lock.json'), 'utf8'), /https?:\/\//);
});
