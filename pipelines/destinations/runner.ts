import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Seal } from '../../domain/access/sealing.ts';
import {
  type DestinationRow,
  filterOf,
  openSecrets,
} from '../../domain/destinations/destination.ts';
import {
  type AnyDestinationType,
  DeliveryError,
  type Publisher,
} from '../../domain/destinations/destination-type.ts';
import { warmUpFrom } from '../../domain/order/partition-reader.ts';
import type { Context } from '../../lib/kafka/log-context.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import { BULK } from '../../lib/kafka/pace.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds, type OffsetBounds } from '../../lib/kafka/topics.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { backoffMs } from '../../lib/timing/backoff.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import type { AttemptLog } from './attempt-log.ts';
import type { DestinationsConfig } from './config.ts';
import { createDelivery, type Delivery } from './delivery.ts';
import { createHealth } from './health.ts';
import { LIMITS } from './limits.ts';
import { type Cut, createPartition, type Partition } from './partition.ts';
import { createPositionStore, LeaseLostError, type StoredPosition } from './position-store.ts';

export interface RunnerDeps {
  readonly context: Context<DestinationsConfig>;
  readonly db: Database;
  readonly seal: Seal;
  readonly attempts: AttemptLog;
}

export type Runner = ReturnType<typeof startRunner>;

/** A partition with its deliveries, which never overlap. */
interface PartitionDelivery {
  readonly partition: Partition;
  readonly deliver: Delivery;
  last: Promise<void>;
}

/**
 * Delivers to one destination, by readers, connections and positions of its own, so no other
 * destination waits for it. A lost log, or any error, starts the runner again at its positions.
 * @param owner of the lease; once another process has it, `onLost` is called and nothing is written
 */
export function startRunner(
  deps: RunnerDeps,
  type: AnyDestinationType,
  row: DestinationRow,
  { owner, onLost }: { readonly owner: string; readonly onLost: () => void },
) {
  const { context, db, attempts } = deps;
  const { epoch } = context.settings;
  const { log } = context.life;
  const stopping = new AbortController();
  const health = createHealth(db, row, owner);
  const target = createTarget(deps, type, row);
  const store = createPositionStore(db, { destinationId: row.id, epoch, owner });
  const of = {
    ...{ destinationId: row.id, type: type.name, epoch, store, health, attempts, log },
    publisher: target.publisher,
    changed: target.changed,
  };

  const run = async () => {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const beganMs = performance.now();
      try {
        await readLog(deps, of, target, stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (error instanceof LeaseLostError) return onLost();
        health.fault();
        log.error({ err: error, destinationId: row.id }, 'a destination starts again');
      }
      if (performance.now() - beganMs > LIMITS.steadyMs) failures = 0;
      const waitMs = LIMITS.restartMs.firstMs + backoffMs(failures, LIMITS.restartMs);
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    owner,
    version: () => target.version(),
    isFailing: health.isFailing,
    /** Takes over changed settings, filter and credentials; the position stays. */
    update: target.update,
    /** Writes what the owner sees of the deliveries. @throws any database error */
    writeHealth: health.write,
    async stop(): Promise<void> {
      stopping.abort(new Error('the destination is stopped'));
      await Promise.race([running, sleep(LIMITS.stopMs, undefined, { ref: false })]);
      await target.close();
    },
  };
}

type Target = ReturnType<typeof createTarget>;

/** The settings in force, and the publisher that is opened with them when it is needed. */
function createTarget(
  { seal, context }: RunnerDeps,
  type: AnyDestinationType,
  first: DestinationRow,
) {
  let row = first;
  let filter = filterOf(row.filter);
  let publisher: Publisher | undefined;
  let changing = new AbortController();
  const close = async () => {
    const old = publisher;
    publisher = undefined;
    await old?.close();
  };
  return {
    version: () => row.version,
    filter: () => filter,
    windowS: () => type.windowS(row.settings),
    changed: () => changing.signal,
    publisher(): Publisher {
      const { id: destinationId, settings } = row;
      const { egress } = context.config;
      publisher ??= type.open({ destinationId, settings, secrets: openSecrets(seal, row), egress });
      return publisher;
    },
    async update(next: DestinationRow): Promise<void> {
      const changed = filterOf(next.filter);
      if (!isDeepStrictEqual(changed, filter)) filter = changed;
      row = next;
      changing.abort();
      changing = new AbortController();
      await close();
    },
    close,
  };
}

type DeliveryDeps = Parameters<typeof createDelivery>[0];

/** Reads the log from the stored positions until the signal. @throws LeaseLostError, or any error */
async function readLog(
  deps: RunnerDeps,
  of: DeliveryDeps,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  const { config, client, settings } = deps.context;
  const topic = topicName(config.namespace, 'pills');
  const ending = new AbortController();
  const ended = new Promise<never>((_, reject) => {
    ending.signal.addEventListener('abort', () => reject(ending.signal.reason));
  });
  ended.catch(() => undefined);
  const both = AbortSignal.any([signal, ending.signal]);
  const bounds = await fetchOffsetBounds(client, topic);
  const partitions = await openPartitions(deps, of, target, bounds);
  const from = new Map(
    [...partitions].map(
      ([
        partition,
        {
          partition: { start },
        },
      ]) => {
        return [partition, warmUpFrom(start, bounds.get(partition)!.low, settings)];
      },
    ),
  );
  const fail = (error: Error) => ending.abort(error);
  const tail = await openTail({
    client,
    topic,
    from,
    pace: BULK,
    onFatal: fail,
    onRecords: (partition, records) =>
      inOrder(partitions.get(partition)!, () =>
        takeRecords(partitions.get(partition)!, records, both),
      ),
  });
  const ticks = setInterval(() => {
    for (const one of partitions.values()) {
      inOrder(one, () => deliverCut(one, one.partition.takeOver(Date.now()), both)).catch(fail);
    }
  }, LIMITS.tickMs);
  try {
    of.health.working();
    await Promise.race([ended, untilAborted(signal)]);
  } finally {
    clearInterval(ticks);
    // Closed first: handlers that the abort ends must not count as failures of the reader.
    const closed = tail.close();
    ending.abort(new Error('the reader is closed'));
    await closed;
  }
}

async function openPartitions(
  deps: RunnerDeps,
  of: DeliveryDeps,
  target: Target,
  bounds: ReadonlyMap<number, OffsetBounds>,
): Promise<ReadonlyMap<number, PartitionDelivery>> {
  const { schemas, settings, life } = deps.context;
  const stored = await of.store.read();
  const partitions = new Map<number, PartitionDelivery>();
  const held = () =>
    [...partitions.values()].reduce((sum, { partition }) => sum + partition.held(), 0);
  for (const [number, { low }] of bounds) {
    const position = await positionWithin(of, number, low, stored.get(number));
    const partition = createPartition({
      ...{ partition: number, settings, schemas, log: life.log, stored: position },
      windowS: target.windowS,
      filter: target.filter,
      isFull: () => held() > LIMITS.heldPillsMax,
    });
    const deliver = createDelivery(of, number, position);
    partitions.set(number, { partition, deliver, last: Promise.resolve() });
  }
  return partitions;
}

/** The stored position; the start of the log for a partition that was never read, or that is cut. */
async function positionWithin(
  { store, destinationId, type, attempts, log }: DeliveryDeps,
  partition: number,
  low: number,
  stored: StoredPosition | undefined,
): Promise<StoredPosition> {
  if (stored !== undefined && stored.nextOffset >= low) return stored;
  // A destination that starts at the earliest record has offset 0, which is no loss.
  if (stored !== undefined && stored.nextOffset > 0) {
    const lost = { destinationId, partition, from: stored.nextOffset, to: low - 1 };
    log.error(lost, 'pills left the log before they were delivered to a destination');
    const detail =
      `Records ${lost.from} to ${lost.to} of partition ${partition} left the log before they were ` +
      'delivered. Read their pills with an export.';
    const error = new DeliveryError('left_the_log', detail);
    attempts.add({ destinationId, type, began: new Date(), pills: 0, bytes: 0, error });
  }
  const snapshot = { offset: low, symbols: stored?.snapshot.symbols ?? new Map() };
  await store.begin(partition, snapshot);
  // The next manifest names no piece before: the chain of manifests must not hide the loss.
  return { nextOffset: low, publishedEnd: undefined, plan: undefined, snapshot };
}

async function takeRecords(
  one: PartitionDelivery,
  records: readonly LogRecord[],
  signal: AbortSignal,
) {
  for (const record of records) {
    const cut = await one.partition.take(record, signal);
    if (cut !== undefined) await deliverCut(one, cut, signal);
  }
}

async function deliverCut(
  one: PartitionDelivery,
  cut: Cut | undefined,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  if (cut !== undefined) await one.deliver(cut, signal);
}

/** Runs the work of a partition one after another. */
function inOrder(one: PartitionDelivery, work: () => Promise<void>): Promise<void> {
  const done = one.last.then(work);
  one.last = done.catch(() => undefined);
  return done;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
