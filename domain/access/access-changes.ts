import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../lib/log/log.ts';
import { schemaName } from '../../lib/postgres/database.ts';
import { listen } from '../../lib/postgres/listen.ts';
import { openStatementPool, type StatementPool } from '../../lib/postgres/statement-pool.ts';

const POLL_INTERVAL_MS = 250;
/** A longer read has failed, and its connection is replaced. */
const POLL_TIMEOUT_MS = 500;
/** After this long without a read, every account counts as changed: the server may be another one. */
const GAP_MS = 5_000;
/** Changes in one read; with more, every account counts as changed. */
const CHANGES_MAX = 10_000;
/** Changes older than an hour are deleted, at most this many at a time. */
const PRUNED_MAX = 1_000;
const PRUNE_INTERVAL_MS = 5 * 60_000;

/**
 * Continues from the oldest transaction that was open at the last read. The transaction that began
 * first may commit last, so continuing from a row id would miss its rows.
 */
const READ = `
  SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xmin,
    (SELECT coalesce(json_agg(json_build_array(c.id::text, c.account_id)), '[]') FROM (
      SELECT id, account_id FROM access_changes WHERE xid >= $1::text::xid8
      LIMIT ${CHANGES_MAX + 1}
    ) c) AS changes`;

const PRUNE = `
  DELETE FROM access_changes WHERE id IN (
    SELECT id FROM access_changes WHERE at < now() - interval '1 hour'
    ORDER BY id LIMIT ${PRUNED_MAX} FOR UPDATE SKIP LOCKED
  ) RETURNING 1`;

/** How far the table was read. */
interface Position {
  readonly xmin: bigint;
  /** Rows that were reported by the last read and may be found again by the next one. */
  readonly seen: ReadonlySet<string>;
  readonly atMs: number;
}

/**
 * Follows changes of access over two channels: immediate notifications, and a table every 250 ms. While
 * the database is unavailable, the reads are retried.
 */
export function followAccessChanges(options: {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly name: string;
  readonly log: Log;
  /** An account's access has changed; undefined = any may have. The same change may come twice. */
  readonly onChange: (accountId: string | undefined) => void;
}) {
  const { databaseUrl: url, namespace, log, onChange } = options;
  const pool = openStatementPool({
    url,
    namespace,
    log,
    name: `${options.name}-changes`,
    connectionsMax: 1,
    timeoutMs: POLL_TIMEOUT_MS,
  });
  const listening = listen({
    url,
    namespace,
    log,
    name: `${options.name}-listen`,
    channel: `access_${schemaName(namespace)}`,
    // Notifications sent while the connection is down are found in the table.
    onNotify: (accountId) => onChange(accountId === '' ? undefined : accountId),
  });
  const closing = new AbortController();
  let position: Position | undefined;

  const polling = (async () => {
    let failures = 0;
    let pruneAtMs = performance.now() + Math.random() * PRUNE_INTERVAL_MS;
    while (!closing.signal.aborted) {
      try {
        position = await readOn(pool, position, onChange);
        failures = 0;
        if (performance.now() >= pruneAtMs) {
          pruneAtMs = performance.now() + PRUNE_INTERVAL_MS;
          const pruned = await pool.query(PRUNE, []);
          if (pruned.length === PRUNED_MAX) pruneAtMs = 0;
        }
      } catch (error) {
        failures += 1;
        if (failures === 1) log.warn({ err: error }, 'changes of access cannot be read');
        // A hung connection has already cost its timeout, so the next one is tried at once.
        if (failures === 1) continue;
      }
      await sleep(POLL_INTERVAL_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  })();

  return {
    /** All changes before this time are known, `performance.now()`; undefined before the first read. */
    confirmedAtMs: (): number | undefined => position?.atMs,
    async close(): Promise<void> {
      closing.abort();
      await Promise.all([polling, listening.close()]);
      await pool.close();
    },
  };
}

async function readOn(
  pool: StatementPool,
  last: Position | undefined,
  onChange: (accountId: string | undefined) => void,
): Promise<Position> {
  // The snapshot is taken after this, so all earlier changes are in it.
  const atMs = performance.now();
  // Without a position no row is wanted yet, and no transaction has a number this high.
  const from = last === undefined ? '9223372036854775807' : String(last.xmin);
  const [row] = await pool.query<{
    readonly xmin: string;
    readonly changes: readonly (readonly [id: string, accountId: string])[];
  }>(READ, [from]);
  const xmin = BigInt(row!.xmin);
  const { changes } = row!;
  const isGap = last === undefined || atMs - last.atMs > GAP_MS || xmin < last.xmin;
  if (isGap || changes.length > CHANGES_MAX) {
    onChange(undefined);
  } else {
    const fresh = changes.filter(([id]) => !last.seen.has(id));
    for (const accountId of new Set(fresh.map(([, account]) => account))) onChange(accountId);
  }
  return { xmin, seen: new Set(changes.map(([id]) => id)), atMs };
}
