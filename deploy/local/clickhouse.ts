import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/root.ts';
import { type Child, startChild } from './child.ts';
import type { EmbeddedEngine, EngineSetting } from './embedded.ts';
import { answers200, waitUntil } from './wait.ts';

const ENTRY = path.join(packageRoot, 'dist', 'deploy', 'local', 'clickhouse-server', 'main.js');
const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 4_000;

/**
 * The embedded ClickHouse: our HTTP server around chdb, a process of its own. Prepares it; `start`
 * may be called again after it died.
 */
export async function embeddedClickhouse(setting: EngineSetting): Promise<EmbeddedEngine> {
  const port = await setting.ports.choose('clickhouse', setting.wantedPorts.clickhouse);
  const folder = setting.place.data('clickhouse');
  mkdirSync(folder, { recursive: true });
  const address = `http://127.0.0.1:${port}`;
  return {
    address,
    start: () =>
      startChild({
        name: 'clickhouse',
        command: process.execPath,
        args: ['--enable-source-maps', ENTRY, '--data', folder, '--port', String(port)],
        // Each running statement holds a thread of this pool; files and gzip want some too.
        env: { UV_THREADPOOL_SIZE: '12', TZ: 'UTC' },
        logFolder: setting.place.logs,
        runFolder: setting.place.run,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: STOP_TIMEOUT_MS,
      }),
    ready: (child: Child) =>
      waitUntil('clickhouse', () => answers200(`${address}/ping`), {
        timeoutMs: READY_TIMEOUT_MS,
        gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
      }),
  };
}
