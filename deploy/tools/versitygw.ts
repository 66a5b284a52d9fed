import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { fillOnce } from './fill-once.ts';
import { toolsFolder } from './npm-package.ts';

const run = promisify(execFile);
const BUILD_TIMEOUT_MS = 900_000;

/** An S3 server over a folder, for tests of the bucket destination. */
const VERSITYGW = {
  module: 'github.com/versity/versitygw',
  version: 'v1.8.0',
  /** Of the module, as in a go.sum; its own go.sum pins what it is built from. */
  sum: 'h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=',
} as const;

/**
 * Builds the server once, from the Go module proxy; needs go.
 * @returns the path of its binary
 * @throws Error if the module is not the pinned one
 */
export async function buildVersitygw(): Promise<string> {
  const { module, version, sum } = VERSITYGW;
  const folder = path.join(toolsFolder, `versitygw-${version}`);
  await fillOnce(folder, async (temporary) => {
    const env = { ...process.env, GOFLAGS: '-mod=readonly', CGO_ENABLED: '0' };
    const options = { cwd: temporary, env, timeout: BUILD_TIMEOUT_MS };
    const { stdout } = await run(
      'go',
      ['mod', 'download', '-json', `${module}@${version}`],
      options,
    );
    const found = JSON.parse(stdout) as { readonly Dir: string; readonly Sum: string };
    if (found.Sum !== sum) throw new Error(`${module} has sum ${found.Sum}, but ${sum} is pinned.`);
    const output = path.join(temporary, 'versitygw');
    const build = ['build', '-trimpath', '-ldflags=-s -w', '-o', output, './cmd/versitygw'];
    await run('go', build, { ...options, cwd: found.Dir });
  });
  return path.join(folder, 'versitygw');
}
