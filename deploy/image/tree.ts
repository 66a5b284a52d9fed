import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../lib/files/package-root.ts';
import { fetchPackage, IMAGE_NODE } from '../tools/npm-package.ts';
import { copyApp } from './app.ts';
import { type CopyStep, readRecipe } from './dockerfile.ts';

/** Bound of the image: the sum of the contents of its layers, in bytes. */
export const IMAGE_BYTES_MAX = 250_000_000;

const PACKAGES_TIMEOUT_MS = 240_000;

/** Makes what the first stages of the Dockerfile make, by the path from which the last one copies. */
const SOURCES: Readonly<Record<string, (target: string) => Promise<void>>> = {
  'build:/base': async (target) => {
    const script = path.join(packageRoot, 'deploy/image/base.sh');
    await promisify(execFile)('sh', [script, target], { timeout: PACKAGES_TIMEOUT_MS });
  },
  'build:/usr/local/bin/node': async (target) => {
    copyFileSync(path.join(await fetchPackage(IMAGE_NODE), 'bin/node'), target);
    chmodSync(target, 0o755);
  },
  'build:/app': async (target) =>
    copyApp(target, { platform: 'linux', arch: 'x64', modules: IMAGE_NODE.modules }),
};

/**
 * Assembles the file tree of the image without Docker, by the COPY instructions of the last stage:
 * Debian's packages, npm's binary of Node, and the programs of this build.
 * @returns bytes by layer
 * @throws Error for an instruction whose source is not known here
 */
export async function assembleTree(
  folder: string,
): Promise<{ readonly layers: readonly { readonly step: CopyStep; readonly bytes: number }[] }> {
  mkdirSync(path.dirname(folder), { recursive: true });
  const temporary = mkdtempSync(`${folder}.part-`);
  chmodSync(temporary, 0o755);
  const layers: { step: CopyStep; bytes: number }[] = [];
  try {
    let before = 0;
    for (const step of readRecipe().copies) {
      const make = SOURCES[`${step.from}:${step.source}`];
      if (make === undefined) {
        throw new Error(`Nothing here makes what the Dockerfile copies from ${step.source}.`);
      }
      const target = path.join(temporary, step.target);
      mkdirSync(path.dirname(target), { recursive: true });
      await make(target);
      const after = bytesOf(temporary);
      layers.push({ step, bytes: after - before });
      before = after;
    }
    rmSync(folder, { recursive: true, force: true });
    renameSync(temporary, folder);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return { layers };
}

/** Bytes of the files below a folder; of a symbolic link, those of its text. */
function bytesOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .reduce((sum, entry) => sum + lstatSync(path.join(entry.parentPath, entry.name)).size, 0);
}
