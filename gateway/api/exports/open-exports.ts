import path from 'node:path';
import type { Keyring } from '../../../domain/access/keyring.ts';
import type { Pepper } from '../../../domain/access/pepper.ts';
import { createExportJobs } from '../../../domain/exports/export-jobs.ts';
import { databaseName } from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTurns } from '../../../lib/rate/turns.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { formatPosition } from '../../../schemas/position.ts';
import { cachedFor } from '../clickhouse/cached-for.ts';
import { openReadBytes } from '../clickhouse/read-bytes.ts';
import { openOwnClickHouse, openSelect } from '../clickhouse/select.ts';
import { readTableCoverage } from '../clickhouse/table-coverage.ts';
import type { ApiConfig } from '../config.ts';
import { exportFileRoute } from './export-file-route.ts';
import { exportRoutes } from './export-routes.ts';
import { startExportWorker } from './export-worker.ts';
import { EXPORT_LIMITS } from './limits.ts';

const POSITION_MAX_AGE_MS = 200;

/** Opens exports: their routes, and the worker of this process. */
export function openExports(
  options: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace' | 'exportsFolder'>;
    readonly db: Database;
    readonly background: Database;
    readonly keyring: Pick<Keyring, 'account'>;
    readonly pepper: Pepper;
    readonly epoch: string;
  },
  life: Lifecycle,
) {
  const { config, db, background, keyring, pepper, epoch } = options;
  // Of several platforms on one disk, each deletes only its own files.
  const folder = path.join(config.exportsFolder, databaseName(config.namespace));
  const reading = {
    name: 'exports',
    bounds: EXPORT_LIMITS,
    connectionsMax: EXPORT_LIMITS.statementsMax,
    // On a real server, a workload of this name bounds what exports take from others; the local
    // one gives them a connection of their own.
    settings: { max_threads: 1, workload: 'export', priority: 1 },
    bytesMax: EXPORT_LIMITS.sliceBytesMax,
  };
  const clickhouse = openOwnClickHouse(config, life, reading);
  const select = openSelect(clickhouse, life.log, reading);
  const readBytes = openReadBytes(clickhouse, life.log, reading);
  const worker = startExportWorker({
    ...{ db: background, keyring, epoch, log: life.log },
    ...{ select, readBytes, folder },
  });
  life.onStop('exports', worker.close);
  const jobs = createExportJobs(db, EXPORT_LIMITS);
  const position = cachedFor(POSITION_MAX_AGE_MS, async () =>
    formatPosition(epoch, (await readTableCoverage(select, epoch)).offsets),
  );
  const { statementsMax, downloadsMax, downloadsOfAccountMax } = EXPORT_LIMITS;
  const turns = createTurns({
    ...{ activeMax: statementsMax, activeOfAccountMax: 1 },
    ...{ waitingMax: 32, waitingOfAccountMax: 4, waitingMs: 5_000 },
  });
  const downloads = createTurns({
    ...{ activeMax: downloadsMax, activeOfAccountMax: downloadsOfAccountMax },
    ...{ waitingMax: 0, waitingOfAccountMax: 0, waitingMs: 0 },
  });
  return [
    ...exportRoutes({ jobs, select, turns, epoch, position, pepper }),
    exportFileRoute({ jobs, pepper, keyring, folder, downloads }),
  ];
}
