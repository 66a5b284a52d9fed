import { openLatestTable } from '../../../domain/order/latest-table.ts';
import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import { STEADY } from '../../../lib/kafka/pace.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import { formatPosition, type Position } from '../../../schemas/position.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import { AT_LEAST_WAIT_MS, WAITERS_MAX } from '../limits.ts';
import { createLatencyWindow } from './latency.ts';

/** How a wait for a position ended. */
type Reached = 'reached' | 'unknown' | 'timeout' | 'overloaded';

/** The latest pill of every symbol, in memory, and the position up to which the log is read. */
export type LatestView = Awaited<ReturnType<typeof openLatestView>>;

/** Opens the view, which is ready once the compacted topic is read up to its end at the start. */
export async function openLatestView(
  deps: {
    readonly client: KafkaClient;
    readonly schemas: SchemaClient;
    readonly settings: TopicSettings;
    readonly namespace: string;
  },
  life: Lifecycle,
) {
  const { settings } = deps;
  const latency = createLatencyWindow();
  let ready = false;
  let lastReceivedAt: number | undefined;

  const table = await openLatestTable({
    ...deps,
    epoch: settings.epoch,
    log: life.log,
    onFatal: life.fail,
    pace: STEADY,
    onRecord(_partition, _offset, pill) {
      if (pill.backfill) return;
      if (lastReceivedAt === undefined || pill.received_at > lastReceivedAt) {
        lastReceivedAt = pill.received_at;
      }
      // A row may be rewritten only to report progress, without a new pill.
      const isNew = ready && table.get(pill.symbol)?.pill.offset !== pill.offset;
      if (isNew) latency.record(nowMicros() - pill.received_at);
    },
  });
  life.onStop('latest view', table.close);
  table.caughtUp.then(() => {
    ready = true;
  }, life.fail);
  const has = ({ offsets }: Position) => {
    const processed = table.processed();
    return [...offsets].every(([partition, offset]) => (processed.get(partition) ?? -1) >= offset);
  };
  const waits = createPositionWaits(has);
  table.onChange(waits.check);

  return {
    isReady: () => ready,
    get: table.get,
    newest: table.newest,
    /** The rows of all symbols, test symbols included, and their number. */
    rows: table.rows,
    size: table.size,
    position: () => formatPosition(settings.epoch, table.processed()),
    /** Resolves when the view reaches the position, after 1 s at most. */
    reach(position: Position): Promise<Reached> {
      const foreign = [...position.offsets.keys()].some((p) => p >= settings.partitions);
      if (position.epoch !== settings.epoch || foreign) return Promise.resolve('unknown');
      if (has(position)) return Promise.resolve('reached');
      return waits.wait(position);
    },
    /** Latency of live pills from receive time to visibility in the view. */
    latency: latency.figures,
    lastReceivedAt: () => lastReceivedAt,
    isConnected: table.isConnected,
    /** By partition, the last offset that the view includes. */
    processed: table.processed,
  };
}

/** Requests that wait until the view has their position. */
function createPositionWaits(has: (position: Position) => boolean) {
  const waiters = new Set<{ readonly position: Position; done(reached: Reached): void }>();
  return {
    /** Ends the waits whose position the view has. */
    check() {
      for (const waiter of waiters) if (has(waiter.position)) waiter.done('reached');
    },
    wait(position: Position): Promise<Reached> {
      if (waiters.size >= WAITERS_MAX) return Promise.resolve('overloaded');
      return new Promise((resolve) => {
        const timer = setTimeout(() => waiter.done('timeout'), AT_LEAST_WAIT_MS);
        const waiter = {
          position,
          done(reached: Reached) {
            clearTimeout(timer);
            waiters.delete(waiter);
            resolve(reached);
          },
        };
        waiters.add(waiter);
      });
    },
  };
}
