import { spawn } from 'node:child_process';
import path from 'node:path';
import { startChild } from '../../deploy/local/child.ts';
import { entryOf, environmentOf } from '../../deploy/local/processes.ts';
import { waitUntil } from '../../deploy/local/wait.ts';
import { setPriority } from '../../lib/child-process/priority.ts';
import { dedicatedUrl } from '../../lib/dedicated/address.ts';
import { createDedicatedStreams } from '../../lib/dedicated/streams.ts';
import { silentLog } from '../../lib/log.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { packageRoot } from '../../lib/root.ts';
import type { OnStop, Stage } from '../fanout/stage.ts';

const READY_MAX_MS = 60_000;
const STOP_MAX_MS = 8_000;

/** Starts the supervisor and makes a dedicated socket. @returns its address, when it serves */
export async function startDedicated(stage: Stage, onStop: OnStop): Promise<string> {
  const { engines, place, ports, logs } = stage;
  const { namespace } = logs.stream;
  const metricsPort = await ports.choose('dedicated-metrics', 0);
  const port = await ports.choose('dedicated', 0);
  const spec = { name: 'dedicated', entry: 'gateway/dedicated/main.js', args: [], metricsPort };
  const child = await startChild({
    name: spec.name,
    command: process.execPath,
    args: ['--enable-source-maps', entryOf(spec)],
    env: environmentOf({ spec, metricsPort }, { ...engines, namespace }, place, {}),
    logFolder: place.logs,
    runFolder: place.run,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: STOP_MAX_MS,
  });
  onStop(() => child.stop());
  const db = openDatabase({ url: engines.postgresUrl, namespace, name: 'bench', log: silentLog });
  try {
    const { account_id: accountId } = await db
      .selectFrom('subscriptions')
      .select('account_id')
      .where('tier', '=', 'institutional')
      .executeTakeFirstOrThrow();
    const streams = createDedicatedStreams(db, { from: port, to: port });
    const made = await streams.create({ accountId, label: 'bench', actor: 'system' });
    if (made.kind !== 'ok') throw new Error(`No dedicated socket: ${made.kind}.`);
    const isReady = async () => (await streams.get(accountId, made.stream.name))?.state === 'ready';
    await waitUntil('the dedicated socket', isReady, { timeoutMs: READY_MAX_MS });
    return dedicatedUrl('ws://127.0.0.1:{port}', made.stream);
  } finally {
    await db.destroy();
  }
}

/** Starts the flood of handshakes, last in priority: its clients would be on other machines. */
export function startFlood(stage: Stage, url: string, perS: number) {
  const { hostname, port } = new URL(url);
  const file = path.join(packageRoot, 'dist/benchmarks/dedicated/flood.js');
  const child = spawn(process.execPath, [file, hostname, port, String(perS)], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd: stage.place.folder,
  });
  if (child.pid !== undefined) setPriority(child.pid, 19);
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => {
    told += chunk.toString('utf8');
  });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  /** @returns handshakes that were answered */
  return async () => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
    await gone;
    clearTimeout(timer);
    return Number(told);
  };
}
