// Compares docs/settings.md with the declarations in lib/config/settings.
// `node deploy/settings.mjs --write` rewrites the page.

import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';

const root = path.resolve(import.meta.dirname, '..');
const PAGE = path.join(root, 'docs/settings.md');
const SOURCE = path.join(root, 'lib/config/settings/page.ts');

/** @returns what is wrong: nothing, or that the page is not current */
export async function settingsFaults() {
  const written = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '';
  if (written === (await page())) return [];
  return ['docs/settings.md differs from lib/config/settings: node deploy/settings.mjs --write'];
}

/** The page, by the project's own TypeScript: Node 20 cannot load it as it is. */
async function page() {
  const bundle = await rolldown({ input: SOURCE, platform: 'node', logLevel: 'silent' });
  const { output } = await bundle.generate({ format: 'esm' });
  await bundle.close();
  const code = Buffer.from(output[0].code).toString('base64');
  const { settingsPage } = await import(`data:text/javascript;base64,${code}`);
  return settingsPage();
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  if (process.argv.includes('--write')) writeFileSync(PAGE, await page());
  const faults = await settingsFaults();
  if (faults.length > 0) {
    process.stderr.write(`${faults.join('\n')}\n`);
    process.exitCode = 1;
  }
}
