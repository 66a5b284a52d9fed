import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Pepper } from './pepper.ts';
import { createSeal } from './sealing.ts';

/** Rows per transaction: their locks are held for some milliseconds. */
const BATCH_ROWS = 100;

interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** Column of the owner, for whom the text was sealed. */
  readonly owner: string;
  readonly id: string;
}

/** Every column that holds a sealed text; a test compares the list with the comments of the tables. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'webhook_secrets', column: 'sealed', owner: 'endpoint_id', id: 'id' },
  { table: 'webhook_endpoints', column: 'headers', owner: 'id', id: 'id' },
  { table: 'authentication_schemes', column: 'sealed', owner: 'id', id: 'id' },
  { table: 'destinations', column: 'sealed', owner: 'id', id: 'id' },
  { table: 'second_factors', column: 'sealed', owner: 'user_id', id: 'user_id' },
];

/**
 * Seals again, under the current version, every text that another version sealed. Each batch is a
 * transaction of its own and the texts name their version, so a run that was killed is continued by
 * the next. Rows that a customer is changing are skipped: their new text may be sealed already.
 * @param onBatch is called after each batch with the number of texts so far
 * @returns the number of texts, and of rows that were skipped
 * @throws SealError naming the owner of a text that no accepted version opens
 */
export async function reseal(
  db: Database,
  pepper: Pepper,
  onBatch: (resealed: number) => void = () => {},
): Promise<{ readonly resealed: number; readonly skipped: number }> {
  let resealed = 0;
  for (const column of SEALED_COLUMNS) {
    for (;;) {
      const rows = await resealBatch(db, pepper, column);
      if (rows === 0) break;
      resealed += rows;
      onBatch(resealed);
    }
  }
  const skipped = [...(await countSealed(db))].reduce(
    (sum, [version, texts]) => sum + (version === pepper.current().version ? 0 : texts),
    0,
  );
  return { resealed, skipped };
}

function resealBatch(db: Database, pepper: Pepper, of: SealedColumn): Promise<number> {
  const seal = createSeal(pepper);
  const [table, column] = [sql.table(of.table), sql.ref(of.column)];
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ id: string; owner: string; sealed: Buffer }>`
      SELECT ${sql.ref(of.id)} AS id, ${sql.ref(of.owner)} AS owner, ${column} AS sealed
      FROM ${table} WHERE get_byte(${column}, 0) <> ${pepper.current().version}
      ORDER BY ${sql.ref(of.id)} LIMIT ${BATCH_ROWS} FOR UPDATE SKIP LOCKED`.execute(tx);
    for (const { id, owner, sealed } of rows) {
      const renewed = seal.seal(seal.open(sealed, owner), owner);
      await sql`UPDATE ${table} SET ${column} = ${renewed} WHERE ${sql.ref(of.id)} = ${id}`.execute(
        tx,
      );
    }
    return rows.length;
  });
}

/** Sealed texts by the version that sealed them. */
export async function countSealed(db: Database): Promise<ReadonlyMap<number, number>> {
  const counts = new Map<number, number>();
  for (const { table, column } of SEALED_COLUMNS) {
    const { rows } = await sql<{ version: number; texts: string }>`
      SELECT get_byte(${sql.ref(column)}, 0) AS version, count(*) AS texts FROM ${sql.table(table)}
      WHERE ${sql.ref(column)} IS NOT NULL GROUP BY 1`.execute(db);
    for (const { version, texts } of rows) {
      counts.set(version, (counts.get(version) ?? 0) + Number(texts));
    }
  }
  return counts;
}

/** Live keys by the version that hashed them, and when the newest use of them was. */
export async function countHashed(db: Database) {
  const { rows } = await sql<{ version: number; keys: string; last_used_at: Date | null }>`
    SELECT pepper AS version, count(*) AS keys, max(last_used_at) AS last_used_at FROM api_keys
    WHERE revoked_at IS NULL AND coalesce(expires_at > now(), true) GROUP BY 1`.execute(db);
  return new Map(
    rows.map(({ version, keys, last_used_at: lastUsedAt }) => [
      version,
      { keys: Number(keys), lastUsedAt },
    ]),
  );
}
