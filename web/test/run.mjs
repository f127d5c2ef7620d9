// Test runner: `node test/run.mjs [NAME…]`. Each `*.test.ts` is bundled by itself.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const filters = process.argv.slice(2);
const names = readdirSync(root).filter((name) => /\.test\.tsx?$/.test(name) && (filters.length === 0 || filters.some((filter) => name.includes(filter))));
const directory = mkdtempSync(join(tmpdir(), 'switchboard-page-test-'));
try {
  await build({
    absWorkingDir: root,
    entryPoints: names,
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: ['node18'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    sourcemap: 'inline',
    // The text depends on the platform's keys.
    banner: { js: "globalThis.navigator ??= { platform: '', onLine: true };" },
    alias: { '@switchboard/client': resolve(root, '../../clients/typescript/src/index.ts') },
    logLevel: 'warning',
  });
  const files = names.map((name) => join(directory, name.replace(/\.tsx?$/, '.mjs')));
  const { status } = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
