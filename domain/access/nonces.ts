import { createHash } from 'node:crypto';
import { GroupCommit } from '../../lib/batch/group-commit.ts';
import type { Log } from '../../lib/log/log.ts';
import type { StatementPool } from '../../lib/postgres/statement-pool.ts';

export const NONCE_LIMITS = {
  /**
   * A row outlives the window of its signature, 70 s, so that clocks of processes and of PostgreSQL
   * may differ by 50 s.
   */
  keptS: 120,
  /** Nonces of one scheme that a process stores within `keptS`; more are `full`. */
  perSchemeMax: 200_000,
  /** Nonces that wait for PostgreSQL; more are `unavailable` at once. */
  heldMax: 5_000,
  /** Nonces of one statement. */
  rowsMax: 500,
  /** Schemes whose nonces a process counts; beyond that, counting begins again. */
  schemesMax: 10_000,
} as const;

const BYTES = 16;

/** Rows in their order, so that two processes never wait for each other in a circle. */
const INSERT = `
  INSERT INTO authentication_nonces (scheme_id, nonce, expires_at)
  SELECT scheme_id, nonce, now() + interval '${NONCE_LIMITS.keptS} seconds'
  FROM unnest($1::text[], $2::bytea[]) AS n(scheme_id, nonce) ORDER BY scheme_id, nonce
  ON CONFLICT DO NOTHING RETURNING scheme_id || ' ' || encode(nonce, 'hex') AS item`;

/** `full`: the scheme has used too many; `unavailable`: PostgreSQL has not answered. */
export type NonceUse = 'fresh' | 'used' | 'full' | 'unavailable';

interface Item {
  readonly schemeId: string;
  readonly nonce: Buffer;
}

export type Nonces = ReturnType<typeof createNonces>;

/**
 * Remembers nonces of signed requests, over all processes. One statement is in flight; nonces that
 * arrive meanwhile share the next one. A commit waits for the disk, so a nonce that was `fresh` is never
 * `fresh` again, not even after a crash of PostgreSQL. While PostgreSQL is away, no nonce is `fresh`.
 */
export function createNonces(pool: Pick<StatementPool, 'query'>, log: Log) {
  const counts = createWindowCounts();
  let isFailing = false;
  const group = new GroupCommit<Item, NonceUse>({
    itemsMax: NONCE_LIMITS.rowsMax,
    async commit(items) {
      try {
        const result = await insert(pool, items);
        isFailing = false;
        return result;
      } catch (error) {
        if (!isFailing) log.warn({ err: error }, 'nonces cannot be stored: signatures are refused');
        isFailing = true;
        return items.map(() => 'unavailable');
      }
    },
  });
  return {
    /** Uses a nonce of a scheme whose signature was verified; only one of equal uses is `fresh`. */
    async use(schemeId: string, text: string): Promise<NonceUse> {
      if (group.heldItems >= NONCE_LIMITS.heldMax) return 'unavailable';
      if (!counts.take(schemeId)) return 'full';
      const nonce = createHash('sha256').update(text).digest().subarray(0, BYTES);
      return group.add({ schemeId, nonce }).catch(() => 'unavailable' as const);
    },
    close: () => group.close(0),
  };
}

async function insert(
  pool: Pick<StatementPool, 'query'>,
  items: readonly Item[],
): Promise<readonly NonceUse[]> {
  const rows = await pool.query<{ item: string }>(INSERT, [
    items.map(({ schemeId }) => schemeId),
    items.map(({ nonce }) => nonce),
  ]);
  const inserted = new Set(rows.map(({ item }) => item));
  // Of equal nonces in one statement, the first has the row.
  return items.map(({ schemeId, nonce }) =>
    inserted.delete(`${schemeId} ${nonce.toString('hex')}`) ? 'fresh' : 'used',
  );
}

/** Counts uses by scheme in windows of the time that a row is kept. */
function createWindowCounts() {
  const windowMs = NONCE_LIMITS.keptS * 1_000;
  let beganAtMs = performance.now();
  let counts = new Map<string, number>();
  return {
    take(schemeId: string): boolean {
      const nowMs = performance.now();
      if (nowMs - beganAtMs >= windowMs || counts.size >= NONCE_LIMITS.schemesMax) {
        beganAtMs = nowMs;
        counts = new Map();
      }
      const used = counts.get(schemeId) ?? 0;
      if (used >= NONCE_LIMITS.perSchemeMax) return false;
      counts.set(schemeId, used + 1);
      return true;
    },
  };
}
