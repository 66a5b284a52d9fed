import os from 'node:os';
import { sql, type Transaction } from 'kysely';
import type { Tables } from '../postgres/tables.ts';

/** Connections to PostgreSQL that one process opens at the most: keys 4, changes 2, sockets 2. */
const CONNECTIONS_PER_PROCESS = 8;
/** Connections to PostgreSQL that are left to all other processes. */
const CONNECTIONS_KEPT = 40;
/** What a process is reckoned at: some 150 MiB, and as much again for pills and queues. */
const BYTES_PER_PROCESS = 384 * 1024 * 1024;
const PROCESSES_MAX = 16;

/** As many processes as half of this machine's memory has room for: 1 to 16. */
export function processesThatFit(memoryBytes = os.totalmem()): number {
  const fitting = Math.floor(memoryBytes / 2 / BYTES_PER_PROCESS);
  return Math.max(1, Math.min(PROCESSES_MAX, fitting));
}

/**
 * How many dedicated sockets there may be, all accounts together: as many as the operator says, and
 * no more than PostgreSQL has connections for.
 */
export async function readRoom(tx: Transaction<Tables>, processesMax: number): Promise<number> {
  const { rows } = await sql<{ connections: number }>`
    SELECT current_setting('max_connections')::int AS connections`.execute(tx);
  const left = Math.max(0, rows[0]!.connections - CONNECTIONS_KEPT);
  return Math.min(processesMax, Math.floor(left / CONNECTIONS_PER_PROCESS));
}
