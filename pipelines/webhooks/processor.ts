import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { followAccessChanges } from '../../domain/access/access-changes.ts';
import { startPepperHolder } from '../../domain/access/pepper-holders.ts';
import { createSeal } from '../../domain/access/sealing.ts';
import { startLatencyLog } from '../../domain/service/latency-log.ts';
import { openSender } from '../../domain/webhooks/send/webhook-sender.ts';
import { customersDatabaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { joinGroup } from '../../lib/kafka/group.ts';
import type { Context } from '../../lib/kafka/log-context.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import { STEADY } from '../../lib/kafka/pace.ts';
import { createGauge } from '../../lib/metrics/metrics.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { openStatementPool } from '../../lib/postgres/statement-pool.ts';
import { retryForever } from '../../lib/timing/backoff.ts';
import { groupName, topicName } from '../../schemas/topic-catalogue.ts';
import { createAttempter, sinceReceived } from './attempt.ts';
import { openAttemptLog } from './attempt-log.ts';
import type { WebhooksConfig } from './config.ts';
import { applyChanges } from './delivery-changes.ts';
import { createDeliveryWriter } from './delivery-writer.ts';
import { createDeliveryQueues } from './dispatch/delivery-queues.ts';
import { startEventFanOut } from './dispatch/event-fan-out.ts';
import { createOwnedPartitions, type OwnedPartitions } from './dispatch/owned-partitions.ts';
import { createPositionStore } from './dispatch/position-store.ts';
import { createPositionWriter, type PositionWriter } from './dispatch/position-writer.ts';
import { restorePartition } from './dispatch/restore-partition.ts';
import { createEndpointHealth } from './endpoints/endpoint-health.ts';
import { createEndpointRegistry, type EndpointRegistry } from './endpoints/endpoint-registry.ts';
import { startFailingNotices } from './endpoints/failing-endpoints.ts';
import { createWaitingLimitNotices } from './endpoints/waiting-limit-notices.ts';
import { FencedError } from './fencing.ts';
import { LIMITS } from './limits.ts';
import { drainEndpoint } from './retry/drain-endpoint.ts';
import { startDrainWorker } from './retry/drain-worker.ts';
import { createWaitingMessages } from './retry/waiting-messages.ts';

/** Records queued before it is checked again whether too many pills are unsettled. */
const RUN_RECORDS_MAX = 500;
const FULL_CHECK_MS = 20;
const CONNECTIONS_MAX = 6;
/** A pool for the writes that the log waits for, so that they never queue behind the drains. */
const WRITER_CONNECTIONS_MAX = 4;
/** Shares of the deadline of lib/run: for attempts in flight, then for writes. */
const QUEUES_DEADLINE_MS = 2_000;
const WRITER_DEADLINE_MS = 1_500;

const endpointsGauge = createGauge({
  name: 'pillole_webhook_endpoints',
  help: 'Endpoints that this dispatcher knows, in any state.',
});
const unsettledGauge = createGauge({
  name: 'pillole_webhook_unsettled_pills',
  help: 'Pills that are neither delivered to all their endpoints nor stored.',
});

type WebhooksContext = Context<WebhooksConfig>;
type Delivery = ReturnType<typeof openDelivery>;

/**
 * Posts pills and events to customers. Its steps, in this order:
 * 1. restore: take the partition over in PostgreSQL, which fences its last owner; continue from
 *    the position, with the state of symbols that was stored before it;
 * 2. judge each record; ask the registry which endpoints receive the pill;
 * 3. first attempts from memory: the log is the outbox. A pill that is delivered is settled; one
 *    that failed, or has no answer after a second, is stored as a row, and then settled;
 * 4. move the position past settled pills; commit it, only to show the lag;
 * 5. further attempts from the rows, by queued jobs: one endpoint a job.
 */
export async function startWebhooks(context: WebhooksContext): Promise<void> {
  const { life } = context;
  const { log } = life;
  const delivery = openDelivery(context, (partition) => group.owned().includes(partition));
  const { queues, sender, writer, health } = delivery;
  await followEndpoints(context, delivery.endpoints);
  const { group, positions, keepPartitions } = joinLog(context, delivery);
  const retries = await startRetries(context, delivery);
  life.onStop('dispatcher', async () => {
    keepPartitions();
    await group.close();
    await queues.close(QUEUES_DEADLINE_MS);
    await sender.close();
    await retries.close();
    await writer.close(WRITER_DEADLINE_MS);
    await positions.close();
    await positions.flush(true).catch((error) => log.warn({ err: error }, 'positions not flushed'));
    await health.close();
  });
  life.readyWhen(() => (group.isJoined() ? undefined : 'not in the consumer group'));
  life.readyWhen(() => (writer.isHealthy() ? undefined : 'deliveries cannot be stored'));
}

/** Opens the parts that first and later attempts share. @param isAssigned by the consumer group */
function openDelivery(context: WebhooksContext, isAssigned: (partition: number) => boolean) {
  const { config, life, settings } = context;
  const { log } = life;
  const { epoch, partitions: partitionCount } = settings;
  const { clickhouse, db, writerDb, pool } = openStores(context);
  const attemptLog = openAttemptLog(clickhouse, log);
  life.onStop('log of attempts', attemptLog.close);
  const onFatal = life.fail;
  const partitions = createOwnedPartitions({
    partitions: partitionCount,
    log,
    isAssigned,
    onFatal,
  });
  const { share } = partitions;
  const writer = createDeliveryWriter({
    apply: (changes) => applyChanges(writerDb, epoch, changes),
    log,
    onFenced: partitions.fence,
    onFatal,
  });
  const latencies = startLatencyLog({ db, channel: 'webhook', histogram: sinceReceived, log });
  life.onStop('latencies', latencies.close);
  const { pepper } = config;
  const holder = startPepperHolder({ db, pepper, kind: 'webhooks', log });
  life.onStop('record of the pepper', holder.close);
  const health = createEndpointHealth(db, log);
  const sender = openSender({
    ...config.egress,
    timeoutMs: config.timeoutMs,
    // First attempts and attempts of a drain run side by side: no attempt waits for a connection.
    connectionsPerEndpoint: LIMITS.inFlightMax + LIMITS.drainConcurrency,
  });
  const attempter = createAttempter({ sender, log: attemptLog, lines: log, health });
  const nowMs = () => performance.now();
  const queues = createDeliveryQueues({ epoch, attempter, writer, share, nowMs });
  const waiting = createWaitingMessages(db, log);
  const notices = createWaitingLimitNotices(db, log);
  const endpoints = createEndpointRegistry({
    pool,
    seal: createSeal(pepper),
    log,
    hasRoom: waiting.hasRoom,
    onDiscarded: notices.onDiscarded,
    onRemoved(endpointId) {
      sender.forget(endpointId);
      queues.forget(endpointId);
      notices.forget(endpointId);
    },
  });
  const store = createPositionStore(writerDb, epoch, randomUUID());
  return { db, partitions, writer, health, sender, attempter, queues, waiting, endpoints, store };
}

function openStores({ config, life }: WebhooksContext) {
  const { namespace, databaseUrl: url } = config;
  const { log } = life;
  const database = customersDatabaseName(namespace);
  const clickhouse = openClickHouse({ url: config.clickhouseUrl, database });
  life.onStop('clickhouse', () => clickhouse.close());
  const open = (name: string, connectionsMax: number) => {
    const db = openDatabase({ url, namespace, name, log, connectionsMax });
    life.onStop(name, () => db.destroy());
    return db;
  };
  const db = open('webhooks', CONNECTIONS_MAX);
  const writerDb = open('webhooks-writer', WRITER_CONNECTIONS_MAX);
  const bounds = { connectionsMax: 2, timeoutMs: 5_000 };
  const pool = openStatementPool({ url, namespace, name: 'webhooks-endpoints', log, ...bounds });
  life.onStop('endpoint pool', () => pool.close());
  return { clickhouse, db, writerDb, pool };
}

/** Loads all endpoints, and follows their changes. */
async function followEndpoints(context: WebhooksContext, endpoints: EndpointRegistry) {
  const { config, life } = context;
  const reload = async (accountId?: string) => {
    // A change that cannot be read must not be lost: the load is retried until the process stops.
    const load = () => endpoints.load(accountId);
    await retryUntilStop(context)('endpoints cannot be read', load).catch(() => undefined);
    endpointsGauge.set(endpoints.size);
  };
  createGauge({
    name: 'pillole_webhook_failing_endpoints',
    help: 'Enabled endpoints that have failed since their last success.',
    collect() {
      this.set(endpoints.failing());
    },
  });
  await reload();
  const changes = followAccessChanges({
    databaseUrl: config.databaseUrl,
    namespace: config.namespace,
    name: 'webhooks',
    log: life.log,
    onChange: (accountId) => void reload(accountId),
  });
  life.onStop('changes', changes.close);
}

/** Steps 1 to 4. */
function joinLog(context: WebhooksContext, delivery: Delivery) {
  const { config, life, client, schemas, settings } = context;
  const { namespace } = config;
  const { log } = life;
  const { partitions, store, endpoints, queues } = delivery;
  const positions = createPositionWriter({
    store,
    partitions: partitions.byNumber,
    log,
    onFenced: partitions.fence,
    onWritten: (next) => void group.commit(next),
  });
  let keepsPartitions = false;
  const group = joinGroup({
    client,
    topic: topicName(namespace, 'pills'),
    groupId: groupName(namespace, 'webhooks'),
    concurrency: settings.partitions,
    pace: STEADY,
    onAssigned: (partition, bounds, { signal }) =>
      restorePartition(partition, bounds, signal, {
        ...{ client, schemas, settings, namespace, log, store, partitions, queues },
        endpointsFor: endpoints.matching,
        retry: retryUntilStop(context),
        onFatal: life.fail,
      }),
    onRecords: (partition, records, { signal }) =>
      applyRecords(partition, records, signal, partitions, positions),
    onRevoked(partition) {
      if (!keepsPartitions) partitions.revoke(partition);
    },
    onFatal: life.fail,
  });
  return {
    group,
    positions,
    /**
     * A stopping process may store waiting pills until another dispatcher takes over: the fence
     * decides.
     */
    keepPartitions() {
      keepsPartitions = true;
    },
  };
}

async function applyRecords(
  partition: number,
  records: readonly LogRecord[],
  signal: AbortSignal,
  partitions: OwnedPartitions,
  positions: PositionWriter,
): Promise<void> {
  const state = partitions.byNumber.get(partition);
  if (state === undefined) return;
  try {
    for (let at = 0; at < records.length; at += RUN_RECORDS_MAX) {
      const run = records.slice(at, at + RUN_RECORDS_MAX);
      while (partitions.isFull()) await sleep(FULL_CHECK_MS, undefined, { signal });
      await positions.allowTries(partition, state, run.at(-1)!.offset + 1, signal);
      await state.apply(run, signal);
    }
    unsettledGauge.set(partitions.unsettled());
  } catch (error) {
    if (error instanceof FencedError) partitions.fence([partition]);
    // Revoked in the middle: the next owner starts from the position.
    else if (!signal.aborted) throw error;
  }
}

/** Step 5, and the regular tasks around it. */
async function startRetries(context: WebhooksContext, delivery: Delivery) {
  const { config, life } = context;
  const { db, endpoints, partitions, waiting } = delivery;
  const deps = { ...delivery, share: partitions.share, signal: life.signal };
  const worker = await retryUntilStop(context)('the job queue cannot be opened', () =>
    startDrainWorker(config, {
      db,
      log: life.log,
      onFatal: life.fail,
      drain: (endpointId) => drainEndpoint(endpointId, deps),
    }),
  );
  const tasks = [
    waiting.start(endpoints),
    startEventFanOut(db, endpoints, life.log),
    startFailingNotices(db, life.log, config.disableAfterS),
  ];
  return {
    async close() {
      await worker.close();
      await Promise.all(tasks.map((task) => task.close()));
    },
  };
}

/** @returns retries until the signal aborts, by default when the process stops */
function retryUntilStop({ life }: WebhooksContext) {
  return <T>(what: string, attempt: () => Promise<T>, signal = life.signal): Promise<T> =>
    retryForever(attempt, {
      firstMs: 100,
      maxMs: 2_000,
      signal,
      onError: (error, attempts) => life.log.warn({ err: error, attempts }, `${what}; waiting`),
    });
}
