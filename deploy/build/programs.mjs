import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { filesIn, fingerprint, madeOf, root } from './made-of.mjs';

const FOLDERS = [
  ...['schemas', 'lib', 'domain', 'gateway', 'pipelines', 'generator', 'deploy', 'benchmarks'],
  'sdk',
];

/** Programs whose names do not end in `main.ts`, and modules that other programs import. */
const OTHERS = [
  ...['generator/examples/avro/direct-producer.ts', 'generator/examples/http/post-pill.ts'],
  'lib/child-process/child.ts',
  ...['sdk/index.ts', 'sdk/browser.ts'],
];

/**
 * Packages of hundreds of small modules. Loading these one by one took half of the time in which a
 * process starts: 945 of the API's 1,396 files (measured). All other packages are loaded from
 * node_modules.
 */
const BUNDLED = /^(typebox|kysely)(\/|$)/;

/**
 * Bundles each program into `dist/<its source's path>.js`, and what several programs share into
 * `dist/chunks`, unless the sources are unchanged. Types are checked by `npm run check`.
 */
export async function buildPrograms() {
  const target = path.join(root, 'dist');
  const sources = FOLDERS.flatMap(filesIn).filter(isSource);
  const made = fingerprint([...sources, ...filesIn('deploy/build'), 'package-lock.json']);
  if (made === madeOf(target)) return;
  const { rolldown } = await import('rolldown');
  const programs = [...sources.filter(isProgram), ...OTHERS];
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(programs.map((file) => [file.slice(0, -'.ts'.length), file])),
    platform: 'node',
    external: (id) => !/^[./]/.test(id) && !BUNDLED.test(id),
  });
  mkdirSync(target, { recursive: true });
  const { output } = await bundle.write({
    dir: target,
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  });
  await bundle.close();
  removeOthers(target, new Set(output.map(({ fileName }) => fileName)));
  writeFileSync(path.join(target, 'made-of'), made);
}

function isSource(file) {
  return /\.ts$/.test(file) && !/\.test\.ts$|\/testing\/|^gateway\/console\//.test(file);
}

function isProgram(file) {
  return /main\.ts$/.test(file) || /^benchmarks\/.*-process\.ts$/.test(file);
}

/** Removes what earlier builds wrote. */
function removeOthers(target, written) {
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    const name = path.relative(target, file);
    if (entry.isFile() && !written.has(name) && !/^console[./]/.test(name)) rmSync(file);
  }
}
