import { nowMicros } from '../../lib/clock.ts';
import type { KafkaClient } from '../../lib/kafka/client.ts';
import { STEADY } from '../../lib/kafka/pace.ts';
import { type LatestRow, type LatestTable, openLatestTable } from '../../lib/latest-table.ts';
import type { Life } from '../../lib/run.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import { formatPosition, type Position } from '../../schemas/position.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { groupName } from '../../schemas/topics.ts';
import { createLatencyWindow, type LatencyFigures } from './latency.ts';
import { AT_LEAST_WAIT_MS, WAITERS_MAX } from './limits.ts';

/** How a wait for a position ended. */
export type Reached = 'reached' | 'unknown' | 'timeout' | 'overloaded';

/** The latest pill of every symbol, in memory, and how far the log is in it. */
export interface LatestView {
  isReady(): boolean;
  get(symbol: string): LatestRow | undefined;
  newest(): LatestRow | undefined;
  /** Of all symbols, test symbols too; and how many. */
  rows(): Iterable<LatestRow>;
  size(): number;
  position(): string;
  /** Resolves at once when the view has the position, else when it comes, at most in 1 s. */
  reach(position: Position): Promise<Reached>;
  /** From receive time to visible here, for live pills. */
  latency(): LatencyFigures;
  lastReceivedAt(): number | undefined;
  isConnected(): boolean;
  /** By partition: all up to and including this offset is in the view. */
  processed(): ReadonlyMap<number, number>;
}

interface Waiter {
  readonly position: Position;
  done(reached: Reached): void;
}

/** Opens the view; it is ready once the compacted topic is read to the end it had at the start. */
export async function openLatestView(
  deps: {
    readonly client: KafkaClient;
    readonly schemas: SchemaClient;
    readonly settings: TopicSettings;
    readonly namespace: string;
  },
  life: Life,
): Promise<LatestView> {
  const { settings } = deps;
  const latency = createLatencyWindow();
  const waiters = new Set<Waiter>();
  let ready = false;
  let lastReceivedAt: number | undefined;

  const table: LatestTable = await openLatestTable({
    ...deps,
    epoch: settings.epoch,
    groupPrefix: groupName(deps.namespace, 'api.view'),
    log: life.log,
    onFatal: life.fail,
    pace: STEADY,
    onRecord(_partition, _offset, pill) {
      if (pill.backfill) return;
      if (lastReceivedAt === undefined || pill.received_at > lastReceivedAt) {
        lastReceivedAt = pill.received_at;
      }
      // A row may be written again only to tell how far the log was read.
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
    for (const [partition, offset] of offsets) {
      if ((processed.get(partition) ?? -1) < offset) return false;
    }
    return true;
  };
  table.onChange(() => {
    for (const waiter of waiters) if (has(waiter.position)) waiter.done('reached');
  });

  return {
    isReady: () => ready,
    get: table.get,
    newest: table.newest,
    rows: table.rows,
    size: table.size,
    position: () => formatPosition(settings.epoch, table.processed()),
    reach(position) {
      const foreign = [...position.offsets.keys()].some((p) => p >= settings.partitions);
      if (position.epoch !== settings.epoch || foreign) return Promise.resolve('unknown');
      if (has(position)) return Promise.resolve('reached');
      if (waiters.size >= WAITERS_MAX) return Promise.resolve('overloaded');
      return new Promise((resolve) => {
        const timer = setTimeout(() => waiter.done('timeout'), AT_LEAST_WAIT_MS);
        const waiter: Waiter = {
          position,
          done(reached) {
            clearTimeout(timer);
            waiters.delete(waiter);
            resolve(reached);
          },
        };
        waiters.add(waiter);
      });
    },
    latency: latency.figures,
    lastReceivedAt: () => lastReceivedAt,
    isConnected: table.isConnected,
    processed: table.processed,
  };
}
