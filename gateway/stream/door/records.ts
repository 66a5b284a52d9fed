import { randomBytes } from 'node:crypto';
import { createKeyUse } from '../../../lib/access/key-use.ts';
import { TIERS } from '../../../lib/access/tiers.ts';
import type { Log } from '../../../lib/log.ts';
import { openDatabase } from '../../../lib/postgres/database.ts';
import { openQuickPool } from '../../../lib/postgres/quick-pool.ts';
import { createSessionRegistry } from '../../../lib/stream-sessions/registry.ts';
import { openRegister, type Register } from './register.ts';

/** A statement of the register; the one after it makes up for one that is lost. */
const TIMEOUT_MS = 2_000;

/**
 * Opens what this process writes into PostgreSQL: which sockets are open, and when which key was
 * used last. Nothing waits for it.
 */
export function openRecords(options: {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly log: Log;
}): Register {
  const { databaseUrl: url, namespace, log } = options;
  const place = { url, namespace, log, connectionsMax: 1 };
  const pool = openQuickPool({ ...place, name: 'stream-sessions', timeoutMs: TIMEOUT_MS });
  const db = openDatabase({ ...place, name: 'stream-key-use' });
  const limits = Object.values(TIERS).map(({ streamConnections }) => streamConnections);
  const smallestMax = Math.min(...limits.filter((limit) => limit > 0));
  const registry = createSessionRegistry(randomBytes(8).toString('hex'), pool, smallestMax);
  const register = openRegister(registry, log);
  const keyUse = createKeyUse({ db, log });
  return {
    opened(connection) {
      register.opened(connection);
      const { keyId } = connection.member;
      if (keyId !== undefined) keyUse.note(keyId, connection.address);
    },
    closed: register.closed,
    async close() {
      await Promise.all([register.close(), keyUse.close()]);
      await Promise.all([pool.close(), db.destroy()]);
    },
  };
}
