import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';

/** Rows of one statement, and statements of a run: more rows than a run's time brings. */
const BATCH_ROWS = 10_000;
const BATCHES_MAX = 50;

/** Deletes nonces whose signatures no process would accept any more. @returns how many */
export async function pruneNonces(db: Database): Promise<number> {
  let pruned = 0;
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    const { numAffectedRows = 0n } = await sql`
      DELETE FROM authentication_nonces WHERE (scheme_id, nonce) IN (
        SELECT scheme_id, nonce FROM authentication_nonces WHERE expires_at < now()
        ORDER BY expires_at LIMIT ${BATCH_ROWS} FOR UPDATE SKIP LOCKED)`.execute(db);
    pruned += Number(numAffectedRows);
    if (numAffectedRows < BigInt(BATCH_ROWS)) break;
  }
  return pruned;
}
