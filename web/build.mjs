// Bundles the page into a directory: `node build.mjs [DIRECTORY]`, `web/dist` unless given.
//
// Names carry a hash of what is in them, so that browsers may keep them for ever; only `index.html` is
// asked for each time. Beside each file stands its compressed form.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));

/** Bundles into `directory`. */
export async function bundle(directory) {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(join(directory, 'assets'), { recursive: true });
  const made = await build({
    absWorkingDir: here,
    entryPoints: [{ in: 'src/main.tsx', out: 'page' }, { in: 'src/style/page.css', out: 'page' }],
    outdir: join(directory, 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    target: ['es2022'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    alias: { '@switchboard/client': resolve(here, '../clients/typescript/src/index.ts') },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const named = Object.entries(made.metafile.outputs).flatMap(([path, { entryPoint }]) => (entryPoint ? [[entryPoint, path.split('/').pop()]] : []));
  const names = Object.fromEntries(named);
  const html = readFileSync(join(here, 'index.html'), 'utf8')
    .replace('{style}', names['src/style/page.css'])
    .replace('{script}', names['src/main.tsx']);
  writeFileSync(join(directory, 'index.html'), html);
  const files = ['index.html', ...readdirSync(join(directory, 'assets')).map((name) => `assets/${name}`)];
  return files.map((name) => {
    const content = readFileSync(join(directory, name));
    const packed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
    writeFileSync(join(directory, `${name}.gz`), packed);
    return { name, bytes: content.length, packed: packed.length };
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await bundle(resolve(process.argv[2] ?? join(here, 'dist')));
  const total = files.reduce((sum, { packed }) => sum + packed, 0);
  for (const { name, bytes, packed } of files) console.log(`${name}  ${bytes} B, ${packed} B compressed`);
  console.log(`in all ${total} B compressed`);
}
