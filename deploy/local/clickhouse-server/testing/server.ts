import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { packageRoot } from '../../../../lib/root.ts';
import { childEnvironment } from '../../config.ts';

/** A server of a test's own. */
export interface TestServer {
  readonly url: string;
  readonly folder: string;
  readonly child: ChildProcess;
}

const ENTRY = path.join(packageRoot, 'dist', 'deploy', 'local', 'clickhouse-server', 'main.js');

/**
 * Starts a server: compiled entry, temporary folder, any free port; on the folder of an earlier one
 * to see what it left.
 */
export async function startTestServer(
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole clickhouse {x}-')),
): Promise<TestServer> {
  const child = spawn(process.execPath, [ENTRY, '--data', folder, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnvironment({ UV_THREADPOOL_SIZE: '12', TZ: 'UTC' }),
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

/** Ends it and waits until it is gone. */
export async function endTestServer(
  server: TestServer,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  if (server.child.exitCode !== null || server.child.signalCode !== null) return;
  const gone = once(server.child, 'exit');
  server.child.kill(signal);
  await gone;
}

/** Sends a statement as curl would. `search` goes into the URL. */
export async function post(
  server: TestServer,
  body: string | Uint8Array | FormData,
  search: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
  const url = new URL(server.url);
  for (const [name, value] of Object.entries(search)) url.searchParams.set(name, value);
  const response = await fetch(url, {
    method: 'POST',
    body: body as string,
    headers,
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}
