import { sql } from 'kysely';
import type { Log } from '../log.ts';
import type { Database } from '../postgres/database.ts';

const WRITE_INTERVAL_MS = 10_000;
/** Keys of one statement; further ones are not noted until it has left. */
const KEYS_MAX = 10_000;

/** Writes when and from where keys were used last. Best effort. */
export interface KeyUse {
  /** Notes a use now. Synchronous and cheap: for every call. */
  note(keyId: string, address: string): void;
  /** Writes what is left, once. */
  close(): Promise<void>;
}

/**
 * Starts to collect uses and to write them, one statement about every 10 s. What cannot be written
 * is forgotten.
 */
export function createKeyUse(options: {
  readonly db: Database;
  readonly log: Log;
  readonly intervalMs?: number;
}): KeyUse {
  const { db, log, intervalMs = WRITE_INTERVAL_MS } = options;
  let uses = new Map<string, { address: string; atMs: number }>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const send = () => {
    timer = undefined;
    const leaving = uses;
    uses = new Map();
    writing = writing
      .then(() => write(db, leaving))
      .catch((error) => log.warn({ err: error }, 'the last use of keys cannot be written'));
  };

  return {
    note(keyId, address) {
      const use = uses.get(keyId);
      if (use !== undefined) {
        use.address = address;
        use.atMs = Date.now();
        return;
      }
      if (uses.size >= KEYS_MAX) return;
      uses.set(keyId, { address, atMs: Date.now() });
      timer ??= setTimeout(send, intervalMs * (0.75 + Math.random() / 2));
    },
    async close() {
      clearTimeout(timer);
      if (uses.size > 0) send();
      await writing;
    },
  };
}

async function write(
  db: Database,
  uses: ReadonlyMap<string, { readonly address: string; readonly atMs: number }>,
): Promise<void> {
  const all = [...uses.values()];
  // A row that another process is writing is left to it: two never wait for each other.
  await sql`
    WITH used AS (
      SELECT * FROM unnest(
        ${[...uses.keys()]}::text[],
        ${all.map(({ address }) => address)}::text[],
        ${all.map(({ atMs }) => new Date(atMs))}::timestamptz[]
      ) AS u(key_id, address, at)
    ), free AS (
      SELECT k.id FROM api_keys k WHERE k.id IN (SELECT key_id FROM used)
      FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE api_keys k SET last_used_at = used.at, last_used_address = used.address
    FROM used JOIN free ON free.id = used.key_id
    WHERE k.id = used.key_id AND (k.last_used_at IS NULL OR k.last_used_at < used.at)`.execute(db);
}
