import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../../../../lib/files/package-root.ts';
import { childEnvironment } from '../../config.ts';

/** A server that one test starts. */
export interface TestServer {
  readonly url: string;
  readonly folder: string;
  readonly child: ChildProcess;
}

export const TEST_PASSWORDS = { default: 'secret of default', analyst: 'secret of analyst' };

/** Headers of the user default. */
export const TEST_USER = {
  'x-clickhouse-user': 'default',
  'x-clickhouse-key': TEST_PASSWORDS.default,
};

const ENTRY = path.join(packageRoot, 'dist', 'deploy', 'local', 'clickhouse-server', 'main.js');

/**
 * Starts the compiled server on any free port, in a temporary folder or in the folder of an earlier
 * server.
 * @param database from which the analyst may read
 */
export async function startTestServer(
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole clickhouse {x}-')),
  database = 'pillole',
  passwords = TEST_PASSWORDS,
): Promise<TestServer> {
  const args = [ENTRY, '--data', folder, '--port', '0', '--database', database];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnvironment({
      UV_THREADPOOL_SIZE: '12',
      TZ: 'UTC',
      CLICKHOUSE_PASSWORD: passwords.default,
      CLICKHOUSE_ANALYST_PASSWORD: passwords.analyst,
    }),
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = / serves (http:\S+)$/.exec(line)?.[1];
    if (url !== undefined) return { url, folder, child };
  }
  throw new Error(`the server ended: ${errors}`);
}

/** The address with the user default. */
export function ownerUrl({ url }: TestServer, password = TEST_PASSWORDS.default): string {
  return String(Object.assign(new URL(url), { username: 'default', password }));
}

/** Stops the server and waits for its end. */
export async function endTestServer(
  server: TestServer,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  if (server.child.exitCode !== null || server.child.signalCode !== null) return;
  const gone = once(server.child, 'exit');
  server.child.kill(signal);
  await gone;
}

/** Sends a statement as curl does; `search` goes into the URL, with the password of its user. */
export async function post(
  server: TestServer,
  body: string | Uint8Array | FormData,
  search: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
  const url = new URL(server.url);
  const user = search.user === 'analyst' ? 'analyst' : 'default';
  const all = { user, password: TEST_PASSWORDS[user], ...search };
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value);
  const response = await fetch(url, {
    method: 'POST',
    body: body as string,
    headers,
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}
