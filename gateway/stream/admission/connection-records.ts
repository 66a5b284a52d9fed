import { randomBytes } from 'node:crypto';
import type { Histogram } from 'prom-client';
import { createKeyUse } from '../../../domain/access/key-use.ts';
import type { Pepper } from '../../../domain/access/pepper.ts';
import { startPepperHolder } from '../../../domain/access/pepper-holders.ts';
import { TIERS } from '../../../domain/access/tiers.ts';
import { startSecurityLog } from '../../../domain/accounts/security-log.ts';
import { startLatencyLog } from '../../../domain/service/latency-log.ts';
import { createSessionRegistry } from '../../../domain/stream-sessions/session-registry.ts';
import type { Log } from '../../../lib/log/log.ts';
import { openDatabase } from '../../../lib/postgres/database.ts';
import { openStatementPool } from '../../../lib/postgres/statement-pool.ts';
import { openSessionSync, type SessionSync } from './session-sync.ts';

/** Time limit of one statement; the next turn makes up for a statement that failed. */
const TIMEOUT_MS = 2_000;

/**
 * Opens the records that this process keeps in PostgreSQL: the open sockets, the last use of each
 * key, the versions of the pepper, the counts of security events, and latencies by hour. No connection
 * waits for them.
 */
export function openConnectionRecords(options: {
  readonly databaseUrl: string;
  readonly namespace: string;
  readonly pepper: Pepper;
  readonly log: Log;
  /** From the receipt of a pill to its socket, in seconds. */
  readonly latency: Histogram;
}): SessionSync {
  const { databaseUrl: url, namespace, pepper, log, latency: histogram } = options;
  const shared = { url, namespace, log, connectionsMax: 1 };
  const pool = openStatementPool({ ...shared, name: 'stream-sessions', timeoutMs: TIMEOUT_MS });
  const db = openDatabase({ ...shared, name: 'stream-key-use' });
  const limits = Object.values(TIERS).map(({ streamConnections }) => streamConnections);
  const smallestMax = Math.min(...limits.filter((limit) => limit > 0));
  const registry = createSessionRegistry(randomBytes(8).toString('hex'), pool, smallestMax);
  const sync = openSessionSync(registry, log);
  const keyUse = createKeyUse({ db, log });
  const security = startSecurityLog({ db, process: 'stream', log });
  const holder = startPepperHolder({ db, pepper, kind: 'stream', log });
  const latencies = startLatencyLog({ db, channel: 'stream', histogram, log });
  return {
    opened(connection) {
      sync.opened(connection);
      const { keyId } = connection.principal;
      if (keyId !== undefined) keyUse.note(keyId, connection.address);
    },
    closed: sync.closed,
    async close() {
      const open = [sync, keyUse, security, holder, latencies];
      await Promise.all(open.map((one) => one.close()));
      await Promise.all([pool.close(), db.destroy()]);
    },
  };
}
