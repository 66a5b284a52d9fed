import { warmUpFrom } from '../../../domain/order/partition-reader.ts';
import type { OffsetBounds } from '../../../lib/kafka/topics.ts';
import type { Log } from '../../../lib/log/log.ts';
import type { DeliveryQueues } from './delivery-queues.ts';
import { createDispatchPartition, type DispatchPartitionOptions } from './dispatch-partition.ts';
import { type FirstStartDeps, firstStart } from './first-start.ts';
import type { OwnedPartitions } from './owned-partitions.ts';
import type { PositionStore, StoredPosition } from './position-store.ts';

interface RestoreDeps
  extends Omit<FirstStartDeps, 'epoch'>,
    Pick<DispatchPartitionOptions, 'settings' | 'endpointsFor'> {
  readonly store: PositionStore;
  readonly partitions: OwnedPartitions;
  readonly queues: DeliveryQueues;
  retry<T>(what: string, attempt: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Takes a partition over. @returns its first offset with effect, and the one to read from */
export async function restorePartition(
  partition: number,
  { low }: OffsetBounds,
  signal: AbortSignal,
  deps: RestoreDeps,
): Promise<{ readonly start: number; readonly from: number }> {
  const { settings, log, queues } = deps;
  const stored = withinLog(partition, await takePosition(partition, low, signal, deps), low, log);
  signal.throwIfAborted();
  const state = createDispatchPartition({
    ...deps,
    partition,
    stored,
    enqueue: (endpoint, pill) => queues.of(endpoint).add(pill),
  });
  deps.partitions.add(partition, state);
  log.info({ partition, from: stored.nextOffset, judged: state.start }, 'partition restored');
  return { start: state.start, from: warmUpFrom(state.start, low, settings) };
}

/** The stored position, or a first one that is written now. */
async function takePosition(
  partition: number,
  low: number,
  signal: AbortSignal,
  deps: RestoreDeps,
): Promise<StoredPosition> {
  const { store, retry } = deps;
  const take = () => retry('positions cannot be read', () => store.take(partition), signal);
  const stored = await take();
  if (stored !== undefined) return stored;
  const start = await firstStart(partition, low, { ...deps, epoch: deps.settings.epoch });
  await retry('positions cannot be written', () => store.begin(partition, start), signal);
  return (await take())!;
}

/** Moves a position that the log has left behind to the log's first offset. */
function withinLog(partition: number, stored: StoredPosition, low: number, log: Log) {
  if (stored.nextOffset < low) {
    const lost = { partition, from: stored.nextOffset, to: low - 1 };
    log.error(lost, 'pills left the log before they were posted: webhooks have lost them');
  }
  const { snapshot } = stored;
  return {
    ...stored,
    nextOffset: Math.max(stored.nextOffset, low),
    snapshot: { ...snapshot, offset: Math.max(snapshot.offset, low) },
  };
}
