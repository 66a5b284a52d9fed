import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { entitlementOf } from '../../../domain/access/entitlement.ts';
import type { Keyring } from '../../../domain/access/keyring.ts';
import { createExportClaims, type ExportRow } from '../../../domain/exports/export-jobs.ts';
import { clickHouseErrorName } from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { runEvery } from '../../../lib/timing/run-every.ts';
import { parsePosition } from '../../../schemas/position.ts';
import { QueryError } from '../clickhouse/query-error.ts';
import { covers, readTableCoverage } from '../clickhouse/table-coverage.ts';
import { formatSpec } from './export-formats.ts';
import type { StoredRequest } from './export-query.ts';
import { ExportFailure, type WriterDeps, writeExport } from './export-writer.ts';
import { EXPORT_LIMITS } from './limits.ts';
import { removeOrphans } from './orphans.ts';

interface WorkerDeps extends WriterDeps {
  readonly db: Database;
  readonly keyring: Pick<Keyring, 'account'>;
  readonly epoch: string;
  readonly log: Log;
}

/**
 * Writes exports, one at a time in each process. Processes claim rows by a lease: an export whose
 * process has died is begun again, in a file of its own.
 */
export function startExportWorker(deps: WorkerDeps) {
  const { db, log } = deps;
  const owner = randomUUID();
  const claims = createExportClaims(db, EXPORT_LIMITS, owner);
  const work = runEvery({
    name: 'exports',
    everyMs: EXPORT_LIMITS.pollMs,
    jitter: 0.25,
    log,
    async run(signal) {
      for (;;) {
        if (signal.aborted) return;
        const row = await claims.claim();
        if (row === undefined) return;
        await writeOne(deps, claims, row, signal);
      }
    },
  });
  const cleaning = runEvery({
    name: 'cleaning of exports',
    everyMs: EXPORT_LIMITS.cleanMs,
    firstMs: EXPORT_LIMITS.pollMs,
    jitter: 0.25,
    log,
    async run() {
      await claims.prune();
      await removeOrphans(deps.folder, claims.known);
    },
  });
  return {
    async close(): Promise<void> {
      await Promise.all([work.close(), cleaning.close()]);
    },
  };
}

type Claims = ReturnType<typeof createExportClaims>;

async function writeOne(
  deps: WorkerDeps,
  claims: Claims,
  row: ExportRow,
  signal: AbortSignal,
): Promise<void> {
  const { id, account_id, position, attempts } = row;
  const request = row.request as unknown as StoredRequest;
  const isEntitled = async () => {
    const account = await deps.keyring.account(account_id);
    // Without PostgreSQL, the confirmation of the lease fails anyway.
    if (account === 'unavailable') return true;
    return (
      account !== undefined && entitlementOf(account, 'history', Date.now()).kind === 'granted'
    );
  };
  // The lease is also confirmed during a long statement.
  const confirming = setInterval(
    () => {
      claims.progress(id, done).catch(() => undefined);
    },
    (EXPORT_LIMITS.leaseS * 1_000) / 3,
  );
  let done = { rows: 0, bytes: 0 };
  try {
    const coverage = await readTableCoverage(deps.select, deps.epoch);
    const wanted = parsePosition(position)!;
    if (wanted.epoch !== deps.epoch || !covers(coverage, wanted.offsets)) {
      // A rebuild, or another log: what the export would hold is not there.
      await claims.fail(id, 'export_incomplete');
      return;
    }
    const name = `${id}-${attempts}-${randomUUID()}.${formatSpec(request.format).extension}`;
    const finished = await writeExport(deps, {
      ...{ name, request, position, signal },
      async onSlice(progress) {
        done = progress;
        if (!(await isEntitled())) {
          await claims.fail(id, 'subscription_required');
          return false;
        }
        return claims.progress(id, progress);
      },
    });
    if (finished === undefined) return;
    if (!(await claims.finish(id, finished))) {
      await rm(path.join(deps.folder, finished.file), { force: true });
    }
  } catch (error) {
    if (signal.aborted) await claims.release(id);
    else if (error instanceof ExportFailure) await claims.fail(id, error.problem);
    else {
      // Released, the next run tries again. Without PostgreSQL, the lease ends by itself.
      await (isFinal(error, attempts) ? claims.fail(id, 'export_failed') : claims.release(id));
      throw error; // logged
    }
  } finally {
    clearInterval(confirming);
  }
}

/**
 * Whether another attempt is useless: the statements are too heavy, or each attempt has failed. An
 * engine that is busy or away is waited for.
 */
function isFinal(error: unknown, attempts: number): boolean {
  const isLast = attempts >= EXPORT_LIMITS.attemptsMax;
  if (!(error instanceof QueryError)) return isLast;
  if (error.kind !== 'unavailable') return error.kind === 'heavy';
  return clickHouseErrorName(error.cause) !== undefined && isLast;
}
