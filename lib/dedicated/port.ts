import { sql, type Transaction } from 'kysely';
import type { Tables } from '../postgres/tables.ts';

/** Ports for new dedicated sockets, both ends included. Those that exist keep theirs. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** A port is given again after this: by then its last process has ended. */
const REST_S = 60;

/** Lets one caller at a time count places and take a port, until its transaction ends. */
export async function lockPlaces(tx: Transaction<Tables>): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtext('dedicated ports ' || current_schema()))`.execute(
    tx,
  );
}

/**
 * Takes a free port until the transaction ends; places must be locked.
 * @returns undefined when the range is full
 */
export async function takePort(
  tx: Transaction<Tables>,
  { from, to }: PortRange,
): Promise<number | undefined> {
  const { rows } = await sql<{ port: number }>`
    SELECT free.port FROM generate_series(${from}::int, ${to}::int) AS free(port)
    WHERE NOT EXISTS (
      SELECT 1 FROM dedicated_streams d WHERE d.port = free.port
        AND coalesce(d.removed_at > now() - make_interval(secs => ${REST_S}), true)
    ) ORDER BY random() LIMIT 1`.execute(tx);
  return rows[0]?.port;
}
