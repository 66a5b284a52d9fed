import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { filesIn, fingerprint, madeOf, root } from './made-of.mjs';

/** Builds the page into dist/console, unless its sources are unchanged. */
export async function buildPage() {
  const target = path.join(root, 'dist/console');
  // The client library is part of the page; the lock file names the other dependencies.
  const made = fingerprint([
    ...['gateway/console/page', 'gateway/console/reference', 'deploy/build'].flatMap(filesIn),
    ...['sdk/rest', 'sdk/stream', 'sdk/webhooks'].flatMap(filesIn),
    ...filesIn('sdk').filter((file) => path.dirname(file) === 'sdk'),
    'gateway/console/vite.config.ts',
    'package-lock.json',
  ]);
  if (made === madeOf(target)) return;
  // Built next to the target and renamed when complete: an API may be serving the previous page.
  const temporary = `${target}.${process.pid}`;
  try {
    const { build } = await import('vite'); // takes half a second, which most runs do not need
    const configFile = path.join(root, 'gateway/console/vite.config.ts');
    await build({ configFile, build: { outDir: temporary } });
    addReference(temporary);
    writeFileSync(path.join(temporary, 'made-of'), made);
    rmSync(target, { recursive: true, force: true });
    renameSync(temporary, target);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** The style and the bar of the API reference, in the page's colours. */
function addReference(folder) {
  const text = (file) => readFileSync(path.join(root, 'gateway/console', file), 'utf8');
  const style = text('page/style/colours.css') + text('reference/reference.css');
  writeFileSync(path.join(folder, 'reference.css'), style);
  writeFileSync(path.join(folder, 'reference.js'), text('reference/reference.js'));
  writeFileSync(path.join(folder, 'icon.svg'), text('page/icon.svg'));
}
