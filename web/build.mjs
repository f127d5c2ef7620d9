// Build: bundles the page into a directory. `node build.mjs [DIRECTORY]`, by default `web/dist`.
//
// File names carry a hash of their content, so browsers may cache them for ever; only `index.html` is
// revalidated. Each file is also written compressed.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, gzipSync } from 'node:zlib';

const root = dirname(fileURLToPath(import.meta.url));

/** Bundles the page into `directory`. */
export async function bundle(directory) {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(join(directory, 'assets'), { recursive: true });
  const result = await build({
    absWorkingDir: root,
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
    alias: { '@switchboard/client': resolve(root, '../clients/typescript/src/index.ts') },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const entries = Object.entries(result.metafile.outputs).flatMap(([path, { entryPoint }]) => (entryPoint ? [[entryPoint, path.split('/').pop()]] : []));
  const names = Object.fromEntries(entries);
  const html = readFileSync(join(root, 'index.html'), 'utf8')
    .replace('{style}', names['src/style/page.css'])
    .replace('{script}', names['src/main.tsx']);
  writeFileSync(join(directory, 'index.html'), html);
  const files = ['index.html', ...readdirSync(join(directory, 'assets')).map((name) => `assets/${name}`)];
  return files.map((name) => {
    const content = readFileSync(join(directory, name));
    const compressed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
    writeFileSync(join(directory, `${name}.gz`), compressed);
    return { name, bytes: content.length, compressed: compressed.length };
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await bundle(resolve(process.argv[2] ?? join(root, 'dist')));
  const total = files.reduce((sum, { compressed }) => sum + compressed, 0);
  for (const { name, bytes, compressed } of files) console.log(`${name}  ${bytes} B, ${compressed} B compressed`);
  console.log(`total ${total} B compressed`);
}
