import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { root } from './stage/gateway.mjs';

test('the types are what the gateway says about itself', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/generate.mjs', '--check'], { cwd: root });
  assert.equal(status, 0, stderr.toString());
});
