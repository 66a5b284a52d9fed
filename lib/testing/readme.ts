import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { packageRoot } from '../root.ts';
import type { StackFile } from '../stack-file.ts';

/** The shell blocks of a section of the README, as they stand there. */
export function readmeBlocks(heading: string): string[] {
  const text = readFileSync(path.join(packageRoot, 'README.md'), 'utf8');
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`The README has no section "${heading}".`);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
}

/**
 * Runs lines of the README in a shell, pasted as they are; only the default addresses are replaced
 * by those of the stack. @returns what the lines printed
 * @throws with the output, when a line fails
 */
export function pasteReadme(lines: string, stack: StackFile, dataFolder: string): string {
  const cwd = mkdtempSync(path.join(os.tmpdir(), 'pillole-readme-'));
  try {
    symlinkSync(dataFolder, path.join(cwd, '.local'));
    const script = lines
      .replaceAll('http://127.0.0.1:8080', stack.api)
      .replaceAll('http://127.0.0.1:8081', stack.ingest)
      .replaceAll('ws://127.0.0.1:8082', stack.stream)
      .replaceAll('http://127.0.0.1:8123', stack.clickhouse);
    const { status, stdout, stderr } = spawnSync('bash', ['-e', '-o', 'pipefail', '-c', script], {
      ...{ cwd, encoding: 'utf8', timeout: 60_000 },
    });
    if (status !== 0) throw new Error(`It ended with ${status}:\n${stdout}\n${stderr}`);
    return stdout;
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}
