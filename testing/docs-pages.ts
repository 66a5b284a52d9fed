import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { StackFile } from '../lib/config/stack-file.ts';
import { withoutCredentials } from '../lib/config/without-credentials.ts';
import { packageRoot } from '../lib/files/package-root.ts';

/**
 * Pages whose shell blocks a test runs, in this order: later pages read the pills that earlier
 * pages send.
 */
export const PAGES = ['generators', 'traders', 'analysts', 'operators', 'contributors'].map(
  (name) => `docs/${name}.md`,
);

/**
 * The `sh` blocks of a page, in order; `heading` selects one section.
 * @throws if there is none
 */
export function shellBlocks(page: string, heading?: string): string[] {
  const text = readFileSync(path.join(packageRoot, page), 'utf8');
  const sections = text.split(/^## /m);
  const section =
    heading === undefined ? text : sections.find((part) => part.startsWith(`${heading}\n`));
  const blocks = [...(section ?? '').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
  if (blocks.length > 0) return blocks;
  throw new Error(`${page} has no sh block${heading === undefined ? '' : ` in "${heading}"`}.`);
}

/**
 * Runs lines of a page in a shell, as pasted in the root folder of the repository beside a running
 * stack; only the default addresses are replaced by those of the stack.
 * @returns the output of the lines
 * @throws with the output, if a line fails
 */
export function pasteLines(lines: string, stack: StackFile, dataFolder: string): string {
  const cwd = mkdtempSync(path.join(os.tmpdir(), 'pillole-docs-'));
  try {
    symlinkSync(dataFolder, path.join(cwd, '.local'));
    for (const name of readdirSync(packageRoot)) {
      if (name !== '.local') symlinkSync(path.join(packageRoot, name), path.join(cwd, name));
    }
    const script = lines
      .replaceAll('http://127.0.0.1:8080', stack.api)
      .replaceAll('http://127.0.0.1:8081', stack.ingest)
      .replaceAll('ws://127.0.0.1:8082', stack.stream)
      .replaceAll('http://127.0.0.1:8123', withoutCredentials(stack.clickhouse))
      // Without it the command looks for the stack beside its own code, not in this folder.
      .replaceAll('npm run replay --', 'npm run replay -- --stack .local/stack.json');
    const { status, stdout, stderr } = spawnSync('bash', ['-e', '-o', 'pipefail', '-c', script], {
      cwd,
      encoding: 'utf8',
      timeout: 400_000,
      env: {
        ...process.env,
        DATABASE_URL: stack.postgres,
        // The build of a `pre` script exists already, because the tests run on it.
        npm_config_ignore_scripts: 'true',
      },
    });
    if (status !== 0) throw new Error(`The lines ended with ${status}:\n${stdout}\n${stderr}`);
    return stdout;
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
