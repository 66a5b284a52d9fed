import os from 'node:os';
import { sql } from 'kysely';
import type { Log } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { type Repetition, runEvery } from '../../lib/timing/run-every.ts';
import type { Pepper } from './pepper.ts';

/** A new version in the file is recorded this soon. */
const LOOK_EVERY_MS = 1_000;
/** Without a change, a process renews its row this often. */
const RENEW_EVERY_MS = 20_000;
/** A process that has not renewed its row for this long does not run any more, or has no database. */
export const HOLDER_LIFE_S = 90;

/**
 * Records which versions of the pepper this process accepts, for as long as it runs, so that an
 * operator does not use a version that a machine lacks.
 * @param kind of process: `api`, `stream`, `webhooks` or `destinations`
 */
export function startPepperHolder(of: {
  readonly db: Database;
  readonly pepper: Pepper;
  readonly kind: string;
  readonly log: Log;
}): Repetition {
  const { db, pepper, kind, log } = of;
  const process = nameOf(kind);
  let recorded = '';
  let recordedAtMs = 0;
  const repetition = runEvery({
    name: 'versions of the pepper',
    everyMs: LOOK_EVERY_MS,
    log,
    async run() {
      const versions = pepper.all().map(({ version }) => version);
      const isOld = performance.now() - recordedAtMs >= RENEW_EVERY_MS;
      if (`${versions}` === recorded && !isOld) return;
      await record(db, process, versions);
      recorded = `${versions}`;
      recordedAtMs = performance.now();
    },
  });
  return {
    async close() {
      await repetition.close();
      const own = db.deleteFrom('pepper_holders').where('process', '=', process);
      await own.execute().catch((err) => log.warn({ err }, 'the record of the pepper stays'));
    },
  };
}

/** The running processes that do not accept a version. */
export async function processesWithout(db: Database, version: number): Promise<readonly string[]> {
  const { rows } = await sql<{ process: string }>`
    SELECT process FROM pepper_holders
    WHERE seen_at > now() - make_interval(secs => ${HOLDER_LIFE_S}) AND NOT (${version} = ANY (versions))
    ORDER BY process`.execute(db);
  return rows.map(({ process }) => process);
}

function nameOf(kind: string): string {
  return `${kind} ${os.hostname()} ${process.pid}`;
}

async function record(db: Database, process: string, versions: readonly number[]): Promise<void> {
  await sql`
    WITH gone AS (DELETE FROM pepper_holders WHERE seen_at < now() - interval '1 day')
    INSERT INTO pepper_holders (process, versions) VALUES (${process}, ${[...versions]}::integer[])
    ON CONFLICT (process) DO UPDATE SET versions = excluded.versions, seen_at = now()`.execute(db);
}
