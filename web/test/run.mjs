// Runs the unit tests of the page: `node test/run.mjs [NAME…]`. Each `*.test.ts` is bundled by itself.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const wanted = process.argv.slice(2);
const names = readdirSync(here).filter((name) => /\.test\.tsx?$/.test(name) && (wanted.length === 0 || wanted.some((word) => name.includes(word))));
const directory = mkdtempSync(join(tmpdir(), 'switchboard-page-test-'));
try {
  await build({
    absWorkingDir: here,
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
    // Words ask which keys the reader has.
    banner: { js: "globalThis.navigator ??= { platform: '', onLine: true };" },
    alias: { '@switchboard/client': resolve(here, '../../clients/typescript/src/index.ts') },
    logLevel: 'warning',
  });
  const files = names.map((name) => join(directory, name.replace(/\.tsx?$/, '.mjs')));
  const { status } = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...files], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  rmSync(directory, { recursive: true, force: true });
}
