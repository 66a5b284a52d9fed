import type { Connection } from '../live/connection.ts';

const RETRY_AFTER_MS = 500;

/**
 * Closes the connections with the largest queues, until what waits over all of them is not above
 * the bound: each alone may be below its own, and together they would be the end of the process.
 * Costs a look at each connection, and a sort only above the bound.
 */
export function relieve(connections: Iterable<Connection>, queueBytesMax: number): void {
  const waiting: { readonly connection: Connection; readonly bytes: number }[] = [];
  let total = 0;
  for (const connection of connections) {
    // Nothing waits for one that flows, neither here nor inside uWS, which need not be asked.
    if (connection.outbox.isFlowing) continue;
    const bytes = connection.queueBytes;
    total += bytes;
    waiting.push({ connection, bytes });
  }
  if (total <= queueBytesMax) return;
  waiting.sort((a, b) => b.bytes - a.bytes);
  const mib = Math.ceil(queueBytesMax / 1_048_576);
  const message = `Over ${mib} MiB wait unread in this process, and few sockets let more wait than this one.`;
  for (const { connection, bytes } of waiting) {
    if (total <= queueBytesMax) return;
    total -= bytes;
    const resumable = connection.resumable();
    connection.fail('slow_consumer', message, { retry_after_ms: RETRY_AFTER_MS, ...resumable });
  }
}
