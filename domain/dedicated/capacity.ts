import os from 'node:os';
import { sql, type Transaction } from 'kysely';
import type { Tables } from '../../lib/postgres/tables.ts';

/** PostgreSQL connections that one process opens at most: keys 4, changes 2, sockets 2. */
const CONNECTIONS_PER_PROCESS = 8;
/** PostgreSQL connections reserved for all other processes. */
const CONNECTIONS_KEPT = 40;
/** Memory budget of a process: some 150 MiB, and as much again for pills and queues. */
const BYTES_PER_PROCESS = 384 * 1024 * 1024;
const PROCESSES_MAX = 16;

/** The number of processes that fit into half of this machine's memory: 1 to 16. */
export function processesThatFit(memoryBytes = os.totalmem()): number {
  const fitting = Math.floor(memoryBytes / 2 / BYTES_PER_PROCESS);
  return Math.max(1, Math.min(PROCESSES_MAX, fitting));
}

/**
 * The number of dedicated sockets allowed for all accounts together: the operator's limit, or fewer
 * if PostgreSQL lacks the connections.
 */
export async function readCapacity(tx: Transaction<Tables>, processesMax: number): Promise<number> {
  const { rows } = await sql<{ connections: number }>`
    SELECT current_setting('max_connections')::int AS connections`.execute(tx);
  const left = Math.max(0, rows[0]!.connections - CONNECTIONS_KEPT);
  return Math.min(processesMax, Math.floor(left / CONNECTIONS_PER_PROCESS));
}

/** Ports for new dedicated sockets, inclusive. Existing sockets keep their ports. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** A port is reused only after this, when its last process has certainly ended. */
const PORT_REUSE_AFTER_S = 60;

/** Lets one transaction at a time count sockets and take a port. */
export async function lockCapacity(tx: Transaction<Tables>): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtext('dedicated ports ' || current_schema()))`.execute(
    tx,
  );
}

/** Picks a free port; `lockCapacity` must be held. @returns undefined if all ports are in use */
export async function takePort(
  tx: Transaction<Tables>,
  { from, to }: PortRange,
): Promise<number | undefined> {
  const { rows } = await sql<{ port: number }>`
    SELECT free.port FROM generate_series(${from}::int, ${to}::int) AS free(port)
    WHERE NOT EXISTS (
      SELECT 1 FROM dedicated_streams d WHERE d.port = free.port
        AND coalesce(d.removed_at > now() - make_interval(secs => ${PORT_REUSE_AFTER_S}), true)
    ) ORDER BY random() LIMIT 1`.execute(tx);
  return rows[0]?.port;
}
