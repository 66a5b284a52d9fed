import { sql } from 'kysely';
import type { Log } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { isSchemeId } from './scheme-rows.ts';

const WRITE_INTERVAL_MS = 10_000;
/** Keys per statement; further keys are not recorded until the next one. */
const KEYS_MAX = 10_000;

export type KeyUse = ReturnType<typeof createKeyUse>;

/**
 * Records when and from which address keys and schemes were last used, in one statement for each
 * about every 10 s. Best effort: a failed write is dropped. Not a `GroupCommit`: only the last use of
 * each is kept.
 */
export function createKeyUse(options: {
  readonly db: Database;
  readonly log: Log;
  readonly intervalMs?: number;
}) {
  const { db, log, intervalMs = WRITE_INTERVAL_MS } = options;
  let uses = new Map<string, { address: string; atMs: number }>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const flush = () => {
    timer = undefined;
    const collected = uses;
    uses = new Map();
    writing = writing
      .then(() => write(db, collected))
      .catch((error) => log.warn({ err: error }, 'the last use of keys cannot be written'));
  };

  return {
    /** Records a use now. Synchronous and cheap enough for every call. */
    note(keyId: string, address: string): void {
      const use = uses.get(keyId);
      if (use !== undefined) {
        use.address = address;
        use.atMs = Date.now();
        return;
      }
      if (uses.size >= KEYS_MAX) return;
      uses.set(keyId, { address, atMs: Date.now() });
      timer ??= setTimeout(flush, intervalMs * (0.75 + Math.random() / 2));
    },
    /** Makes one attempt to write the remaining uses. */
    async close(): Promise<void> {
      clearTimeout(timer);
      if (uses.size > 0) flush();
      await writing;
    },
  };
}

async function write(
  db: Database,
  uses: ReadonlyMap<string, { readonly address: string; readonly atMs: number }>,
): Promise<void> {
  const all = [...uses.values()];
  const ofSchemes = [...uses.keys()].some(isSchemeId);
  if (ofSchemes) await writeUses(db, 'authentication_schemes', uses, all);
  await writeUses(db, 'api_keys', uses, all);
}

async function writeUses(
  db: Database,
  name: 'api_keys' | 'authentication_schemes',
  uses: ReadonlyMap<string, unknown>,
  all: readonly { readonly address: string; readonly atMs: number }[],
): Promise<void> {
  const table = sql.table(name);
  // Rows that another process is writing are skipped, so that two never wait for each other.
  await sql`
    WITH used AS (
      SELECT * FROM unnest(
        ${[...uses.keys()]}::text[],
        ${all.map(({ address }) => address)}::text[],
        ${all.map(({ atMs }) => new Date(atMs))}::timestamptz[]
      ) AS u(key_id, address, at)
    ), free AS (
      SELECT k.id FROM ${table} k WHERE k.id IN (SELECT key_id FROM used)
      FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE ${table} k SET last_used_at = used.at, last_used_address = used.address
    FROM used JOIN free ON free.id = used.key_id
    WHERE k.id = used.key_id AND (k.last_used_at IS NULL OR k.last_used_at < used.at)`.execute(db);
}
