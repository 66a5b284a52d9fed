import { sql } from 'kysely';
import type { Log } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import {
  dueAccountEvents,
  putBackCounts,
  takeCounts,
  type WaitingCount,
} from '../access/security-events.ts';
import { writeAudit } from './audit.ts';

const EVERY_MS = 10_000;
/** Audit entries of a round; the others wait for the next. */
const ENTRIES_MAX = 200;
/** Networks shown for each event. */
const NETWORKS_SHOWN = 5;

/** Stores counted security events every ten seconds, and once more at the close. */
export function startSecurityLog(of: {
  readonly db: Database;
  /** Kind of process: api or stream. */
  readonly process: string;
  readonly log: Log;
  readonly everyMs?: number;
}) {
  const { db, process, log, everyMs = EVERY_MS } = of;
  const run = () => storeSecurityEvents(db, process);
  const repetition = runEvery({ name: 'security log', everyMs, log, run });
  return {
    async close(): Promise<void> {
      await repetition.close();
      await run().catch((err) => log.warn({ err }, 'counts of security events are lost'));
    },
  };
}

/** Stores what was counted since the last call. @throws any database error; then nothing is lost */
export async function storeSecurityEvents(db: Database, process: string): Promise<void> {
  const counts = takeCounts();
  try {
    if (counts.length > 0) await addCounts(db, process, counts);
  } catch (error) {
    putBackCounts(counts);
    throw error;
  }
  for (const { newest, count, since, written } of dueAccountEvents(Date.now()).slice(
    0,
    ENTRIES_MAX,
  )) {
    const { event, ...entry } = newest;
    const detail = { ...(event === undefined ? {} : { reason: event }), count, since };
    await writeAudit(db, { ...entry, detail });
    written();
  }
}

/** Rows in the order of the key, so that processes never deadlock. */
async function addCounts(db: Database, process: string, counts: readonly WaitingCount[]) {
  const rows = counts.map(({ periodMs, event, network, count }) => ({
    at: new Date(periodMs),
    process,
    event,
    network,
    count,
  }));
  const keyOf = (row: (typeof rows)[number]) => `${row.at.getTime()} ${row.event} ${row.network}`;
  await db
    .insertInto('security_events')
    .values(rows.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)))
    .onConflict((conflict) =>
      conflict
        .columns(['at', 'process', 'event', 'network'])
        .doUpdateSet({ count: sql<string>`security_events.count + excluded.count` }),
    )
    .execute();
}

/** Security events since a time, the most frequent first, with the networks that caused most of them. */
export async function readSecurityEvents(db: Database, sinceS: number) {
  const { rows } = await sql<{
    readonly event: string;
    readonly process: string;
    readonly count: string;
    readonly newest: Date;
    readonly networks: readonly string[];
  }>`
    WITH counted AS (
      SELECT process, event, network, sum(count) AS count, max(at) AS newest FROM security_events
      WHERE at > now() - make_interval(secs => ${sinceS + 300}) GROUP BY 1, 2, 3)
    SELECT event, process, sum(count)::text AS count, max(newest) AS newest,
      (array_agg(network || ' ' || count ORDER BY count DESC, network))[1:${sql.lit(NETWORKS_SHOWN)}] AS networks
    FROM counted GROUP BY 1, 2 ORDER BY sum(count) DESC, 1, 2`.execute(db);
  return rows.map(({ count, ...row }) => ({ ...row, count: Number(count) }));
}
