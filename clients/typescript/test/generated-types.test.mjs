// Generated types: src/generated is up to date.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { root } from './support/gateway-process.mjs';

test('the generated types match the documents of the gateway', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/generate.mjs', '--check'], { cwd: root });
  assert.equal(status, 0, stderr.toString());
});
