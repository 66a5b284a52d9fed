import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import { buildVersitygw } from '../deploy/tools/versitygw.ts';
import { getPort } from './ports.ts';
import { waitFor } from './wait.ts';

export type S3Server = Awaited<ReturnType<typeof startS3Server>>;

/** Starts a real S3 server over a temporary folder, which holds the objects as files. */
export async function startS3Server() {
  const binary = await buildVersitygw();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-s3-'));
  const root = path.join(folder, 'buckets');
  // Extended attributes are not everywhere, so metadata is in files.
  const metadata = path.join(folder, 'metadata');
  for (const each of [root, metadata]) mkdirSync(each);
  const port = await getPort();
  const credentials = {
    access_key_id: 'test-access',
    secret_access_key: 'test-secret-of-the-server',
  };
  const child = spawn(
    binary,
    ['--port', `127.0.0.1:${port}`, '--quiet', 'posix', '--sidecar', metadata, root],
    {
      env: {
        ROOT_ACCESS_KEY: credentials.access_key_id,
        ROOT_SECRET_KEY: credentials.secret_access_key,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString('utf8')).slice(-100_000);
    });
  }
  const url = `http://127.0.0.1:${port}`;
  await waitFor('the S3 server', async () => {
    const { statusCode, body } = await request(`${url}/`);
    await body.dump();
    return statusCode > 0 || output;
  });
  return {
    ...{ url, root, credentials },
    pid: child.pid!,
    output: () => output,
    /** A folder below the root is a bucket. */
    makeBucket: (name: string) => mkdirSync(path.join(root, name)),
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    async close(): Promise<void> {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
