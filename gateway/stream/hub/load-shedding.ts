import type { Connection } from './stream-connection.ts';

const RETRY_AFTER_MS = 500;

/**
 * Closes the connections with the largest queues until the total is within the bound: each queue
 * may be below its own bound while together they would exhaust the memory of the process. Costs one
 * check per connection, and a sort only above the bound.
 */
export function shedLoad(connections: Iterable<Connection>, queueBytesMax: number): void {
  const queued: { readonly connection: Connection; readonly bytes: number }[] = [];
  let total = 0;
  for (const connection of connections) {
    // A flowing connection has no queue, neither here nor in uWS, which need not be asked.
    if (connection.outbox.isFlowing) continue;
    const bytes = connection.queueBytes;
    total += bytes;
    queued.push({ connection, bytes });
  }
  if (total <= queueBytesMax) return;
  queued.sort((a, b) => b.bytes - a.bytes);
  const mib = Math.ceil(queueBytesMax / 1_048_576);
  const message = `More than ${mib} MiB is queued unread in this process, and the queue of this connection is among the largest. Read faster, or subscribe to fewer symbols.`;
  for (const { connection, bytes } of queued) {
    if (total <= queueBytesMax) return;
    total -= bytes;
    const position = connection.resumePosition();
    connection.fail('slow_consumer', message, { retry_after_ms: RETRY_AFTER_MS, ...position });
  }
}
