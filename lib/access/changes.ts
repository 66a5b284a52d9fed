import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../log.ts';
import { schemaName } from '../postgres/database.ts';
import { listen } from '../postgres/listen.ts';
import { openQuickPool, type QuickPool } from '../postgres/quick-pool.ts';

const POLL_INTERVAL_MS = 250;
/** A read that takes longer has failed, and its connection is replaced. */
const POLL_TIMEOUT_MS = 500;
/** After so long without a read everything counts as changed: it may be another server by now. */
const GAP_MS = 5_000;
/** Changes in one read; with more, everything counts as changed. */
const CHANGES_MAX = 10_000;
/** Changes are deleted when they are an hour old, so many at a time. */
const PRUNED_MAX = 1_000;
const PRUNE_INTERVAL_MS = 5 * 60_000;

/**
 * Reads on from the oldest transaction that was open when the last read looked. Of two
 * transactions the one that began first may commit last: by row id it would be missed.
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

export interface ChangesOptions {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly name: string;
  readonly log: Log;
  /** An account's access has changed; undefined = any may have. The same change may come twice. */
  readonly onChange: (accountId: string | undefined) => void;
}

/** Follows changes of access over two channels: notifications at once, and a table every 250 ms. */
export interface Changes {
  /** Up to when all changes are known, `performance.now()`; undefined before the first read. */
  confirmedAtMs(): number | undefined;
  close(): Promise<void>;
}

interface ReadRow {
  readonly xmin: string;
  readonly changes: readonly (readonly [id: string, accountId: string])[];
}

/** Where a reader of the table is. */
interface Position {
  readonly xmin: bigint;
  /** Rows that the last read has told and the next may find again. */
  readonly told: ReadonlySet<string>;
  readonly atMs: number;
}

/** Starts to follow; while the database is away it goes on trying. */
export function followChanges(options: ChangesOptions): Changes {
  const { databaseUrl: url, namespace, log, onChange } = options;
  const pool = openQuickPool({
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
    // What is sent while it does not listen is found in the table.
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
        // A hanging connection has cost its time-out already: the next one is asked at once.
        if (failures === 1) continue;
      }
      await sleep(POLL_INTERVAL_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  })();

  return {
    confirmedAtMs: () => position?.atMs,
    async close() {
      closing.abort();
      await Promise.all([polling, listening.close()]);
      await pool.close();
    },
  };
}

async function readOn(
  pool: QuickPool,
  last: Position | undefined,
  onChange: (accountId: string | undefined) => void,
): Promise<Position> {
  // Its snapshot is taken later than this: nothing before it is unknown.
  const atMs = performance.now();
  // Without a position there is nothing to find yet: no transaction has so high a number.
  const from = last === undefined ? '9223372036854775807' : String(last.xmin);
  const [row] = await pool.query<ReadRow>(READ, [from]);
  const xmin = BigInt(row!.xmin);
  const { changes } = row!;
  const isGap = last === undefined || atMs - last.atMs > GAP_MS || xmin < last.xmin;
  if (isGap || changes.length > CHANGES_MAX) {
    onChange(undefined);
  } else {
    const fresh = changes.filter(([id]) => !last.told.has(id));
    for (const accountId of new Set(fresh.map(([, account]) => account))) onChange(accountId);
  }
  return { xmin, told: new Set(changes.map(([id]) => id)), atMs };
}
