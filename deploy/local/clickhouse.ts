import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { databaseName } from '../../lib/clickhouse/clickhouse-client.ts';
import { withoutCredentials } from '../../lib/config/without-credentials.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import type { EmbeddedEngine, EngineDeps } from './embedded-engine.ts';
import { answers200 } from './wait-until.ts';

const ENTRY = path.join(packageRoot, 'dist', 'deploy', 'local', 'clickhouse-server', 'main.js');
const READY_TIMEOUT_MS = 30_000;

/** Prepares the embedded ClickHouse: a process of its own with our HTTP server around chdb. */
export async function embeddedClickhouse({
  layout,
  ports,
  preferredPorts,
  namespace,
  passwords,
}: EngineDeps): Promise<EmbeddedEngine> {
  const port = await ports.allocate('clickhouse', preferredPorts.clickhouse);
  const folder = layout.data('clickhouse');
  mkdirSync(folder, { recursive: true });
  const address = `http://default:${passwords.clickhouse}@127.0.0.1:${port}`;
  return {
    address,
    child: () => ({
      command: process.execPath,
      args: [
        ...['--enable-source-maps', ENTRY, '--data', folder, '--port', String(port)],
        ...['--database', databaseName(namespace)],
      ],
      // Each running statement holds a thread of this pool; files and gzip need some as well.
      env: {
        UV_THREADPOOL_SIZE: '12',
        TZ: 'UTC',
        CLICKHOUSE_PASSWORD: passwords.clickhouse,
        CLICKHOUSE_ANALYST_PASSWORD: passwords.clickhouse_analyst,
      },
    }),
    isReady: () => answers200(`${withoutCredentials(address)}/ping`),
    readyTimeoutMs: READY_TIMEOUT_MS,
  };
}
