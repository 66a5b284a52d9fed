import type { Log } from '../../lib/log/log.ts';
import type { StatementPool } from '../../lib/postgres/statement-pool.ts';
import { hashKey } from './key-format.ts';
import type { Pepper } from './pepper.ts';

/** Keys whose hashes wait to be renewed; beyond that, a later use of the key renews its hash. */
const WAITING_MAX = 1_000;

/** A key as a cache holds it; `pepper` is the version that its hash was made under. */
export interface HashedKey {
  readonly key: { readonly id: string };
  pepper: number;
}

/**
 * Renews the hashes of keys that were made under an older version of the pepper. A key is not stored,
 * so only a use of the key makes this possible. One row per statement, so that processes that renew
 * the same keys never deadlock.
 */
export function createKeyRehash(pool: StatementPool, pepper: Pepper, log: Log) {
  const waiting = new Map<string, { readonly text: string; readonly hashed: HashedKey }>();
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    try {
      for (const [id, { text, hashed }] of waiting) {
        const { version, bytes } = pepper.current();
        await pool.query(
          'UPDATE api_keys SET hash = $2, pepper = $3 WHERE id = $1 AND pepper < $3',
          [id, hashKey(text, bytes), version],
        );
        hashed.pepper = version;
        waiting.delete(id);
      }
    } catch (error) {
      // The next use of each key tries again.
      waiting.clear();
      log.warn({ err: error }, 'the hash of a key could not be renewed');
    } finally {
      isRunning = false;
    }
  };
  return {
    /** Notes a use of a key. It costs a comparison unless the hash is old. */
    note(hashed: HashedKey, text: string): void {
      if (hashed.pepper >= pepper.current().version || waiting.size >= WAITING_MAX) return;
      waiting.set(hashed.key.id, { text, hashed });
      if (!isRunning) void run();
    },
  };
}
