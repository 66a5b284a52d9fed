import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { followChanges } from '../../lib/access/changes.ts';
import { readPepper } from '../../lib/access/pepper.ts';
import { retryForever } from '../../lib/backoff.ts';
import { databaseName, openClickHouse } from '../../lib/clickhouse.ts';
import type { Context } from '../../lib/context.ts';
import type { LogRecord } from '../../lib/kafka/consume.ts';
import { joinGroup, type Ownership } from '../../lib/kafka/group.ts';
import { STEADY } from '../../lib/kafka/pace.ts';
import type { OffsetBounds } from '../../lib/kafka/topics.ts';
import { createCounter, createGauge } from '../../lib/metrics.ts';
import { warmUpFrom } from '../../lib/partition-reader.ts';
import { openDatabase } from '../../lib/postgres/database.ts';
import { openQuickPool } from '../../lib/postgres/quick-pool.ts';
import { openResolver } from '../../lib/webhooks/resolve.ts';
import { createSeal } from '../../lib/webhooks/sealing.ts';
import { openSender } from '../../lib/webhooks/sender.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import { createAttempter } from './attempt.ts';
import { openAttemptLog } from './attempt-log.ts';
import { createAudience, type Listener } from './audience.ts';
import { createBacklog } from './backlog.ts';
import type { WebhooksConfig } from './config.ts';
import { drain } from './drain.ts';
import { startEvents } from './events.ts';
import { startFailing } from './failing.ts';
import { firstStart } from './first-start.ts';
import { createHealth } from './health.ts';
import { createKeeper } from './keeper.ts';
import { createLane, type Lane } from './lane.ts';
import { LIMITS } from './limits.ts';
import { createWebhookPartition, type WebhookPartition } from './partition.ts';
import { createPositions } from './positions.ts';
import { createWebhookStore, FencedError } from './store.ts';
import { startWorker } from './worker.ts';

/** A backlog that is full is told again after so long: its owner may have replayed meanwhile. */
const FULL_TOLD_MS = 10_000;
/** Records handed over before it is looked whether too much is unsettled. */
const RUN_RECORDS_MAX = 500;
const BUSY_CHECK_MS = 20;
const CONNECTIONS_MAX = 6;
/** For what the log waits for: never behind the drains. */
const KEEPER_CONNECTIONS_MAX = 4;
/** A partition that another one has taken: the group takes so long at most to tell us. */
const FENCED_MAX_MS = 12_000;
/** Shares of the deadline of lib/run: what is on its way, then what is kept. */
const LANES_DEADLINE_MS = 2_000;
const KEEPER_DEADLINE_MS = 1_500;

const refusedTotal = createCounter({
  name: 'pillole_webhook_pills_not_kept_total',
  help: 'Pills that were not kept for an endpoint, because too much waited for it.',
});
const endpointsGauge = createGauge({
  name: 'pillole_webhook_endpoints',
  help: 'Endpoints that this dispatcher knows, in whatever state.',
});
const unsettledGauge = createGauge({
  name: 'pillole_webhook_unsettled_pills',
  help: 'Pills that are neither delivered to all who want them nor kept.',
});

/**
 * Posts pills and events to customers. Its steps, in this order:
 * 1. restore: take the partition over in PostgreSQL, which fences its last owner; go on from the
 *    position, with the state of symbols that was kept before it;
 * 2. judge each record; ask who wants the pill;
 * 3. first attempts from memory: the log is the outbox. A pill that is delivered is settled; one
 *    that failed, or has no answer after a second, is kept as a row, and then settled;
 * 4. move the position past what is settled; commit it, for the eyes of operators;
 * 5. further attempts from the rows, by jobs of a queue: one endpoint a job.
 */
export async function startWebhooks(context: Context<WebhooksConfig>): Promise<void> {
  const { config, life, client, schemas, settings } = context;
  const { namespace, databaseUrl } = config;
  const partitions = new Map<number, WebhookPartition>();
  const lanes = new Map<string, Lane>();
  let isStopping = false;

  const clickhouse = openClickHouse({
    url: config.clickhouseUrl,
    database: databaseName(namespace),
  });
  life.onStop('clickhouse', () => clickhouse.close());
  const db = openDatabase({
    ...{ url: databaseUrl, namespace, name: 'webhooks', log: life.log },
    connectionsMax: CONNECTIONS_MAX,
  });
  life.onStop('database', () => db.destroy());
  const keeperDb = openDatabase({
    ...{ url: databaseUrl, namespace, name: 'webhooks-keeper', log: life.log },
    connectionsMax: KEEPER_CONNECTIONS_MAX,
  });
  life.onStop('keeper database', () => keeperDb.destroy());
  const pool = openQuickPool({
    ...{ url: databaseUrl, namespace, name: 'webhooks-audience', log: life.log },
    ...{ connectionsMax: 2, timeoutMs: 5_000 },
  });
  life.onStop('audience pool', () => pool.close());
  const attemptLog = openAttemptLog(clickhouse, life.log);
  life.onStop('log of attempts', attemptLog.close);

  const store = createWebhookStore(keeperDb, settings.epoch, randomUUID());
  const lose = (lost: readonly number[]) => {
    for (const partition of lost) {
      life.log.warn({ partition }, 'another dispatcher has taken the partition');
      partitions.get(partition)?.lose();
      partitions.delete(partition);
      setTimeout(() => {
        if (!group.owned().includes(partition) || partitions.has(partition)) return;
        life.fail(new Error(`Partition ${partition} is ours by the group, another's by its row.`));
      }, FENCED_MAX_MS).unref();
    }
  };
  const keeper = createKeeper(store, { log: life.log, onFenced: lose, onFatal: life.fail });
  const health = createHealth(db, life.log);
  const backlog = createBacklog(db, life.log);
  const audience = createAudience({
    ...{ pool, seal: createSeal(readPepper(config.pepperPath)), log: life.log },
    hasRoom: backlog.hasRoom,
    onRefused(listener, receivedAt, pills) {
      refusedTotal.inc(pills);
      void tellBacklogFull(listener, receivedAt);
    },
    onGone(endpointId) {
      sender.forget(endpointId);
      lanes.delete(endpointId);
      toldFull.delete(endpointId);
    },
  });
  /** Endpoints whose owners can read it already; a replay by the owner clears it. */
  const toldFull = new Map<string, number>();
  const tellBacklogFull = async (listener: Listener, receivedAt: number) => {
    if (performance.now() - (toldFull.get(listener.id) ?? -Infinity) < FULL_TOLD_MS) return;
    toldFull.set(listener.id, performance.now());
    await db
      .updateTable('webhook_endpoints')
      .set({ backlog_full_since: new Date(receivedAt / 1_000) })
      .where('id', '=', listener.id)
      .where('backlog_full_since', 'is', null)
      .execute()
      .catch((error) => life.log.warn({ err: error }, 'a full backlog was not told'));
  };
  const ask = <T>(what: string, attempt: () => Promise<T>, signal = life.signal) =>
    retryForever(attempt, {
      ...{ firstMs: 100, maxMs: 2_000, signal },
      onError: (error, attempts) => life.log.warn({ err: error, attempts }, what),
    });
  const reload = async (accountId?: string) => {
    // A change that cannot be read must not be forgotten: it is tried until it can.
    await ask('endpoints cannot be read; waiting', () => audience.load(accountId)).catch(
      () => undefined,
    );
    endpointsGauge.set(audience.size);
  };
  await reload();
  const changes = followChanges({
    ...{ databaseUrl, namespace, name: 'webhooks', log: life.log },
    onChange: (accountId) => {
      void reload(accountId);
    },
  });
  life.onStop('changes', changes.close);

  const sender = openSender({
    policy: config.urls,
    resolver: openResolver({ servers: config.dnsServers }),
    timeoutMs: config.timeoutMs,
    // First attempts and those of a drain side by side: none waits for a connection.
    connectionsPerEndpoint: LIMITS.inFlightMax + LIMITS.drainConcurrency,
  });
  const attempter = createAttempter({ sender, log: attemptLog, health });
  const share = () => Math.max(1, partitions.size) / settings.partitions;
  const laneOf = (listener: Listener): Lane => {
    const known = lanes.get(listener.id);
    if (known !== undefined) return known;
    const lane = createLane(listener, {
      ...{ epoch: settings.epoch, attempter, keeper, share, nowMs: () => performance.now() },
    });
    lanes.set(listener.id, lane);
    return lane;
  };

  const positions = createPositions({
    ...{ store, partitions, log: life.log, onFenced: lose },
    onWritten: (next) => void group.commit(next),
  });

  const restore = async (partition: number, { low }: OffsetBounds, { signal }: Ownership) => {
    const take = () => ask('positions cannot be read', () => store.take(partition), signal);
    let kept = await take();
    if (kept === undefined) {
      const parts = { client, schemas, namespace, epoch: settings.epoch, log: life.log };
      const start = await firstStart(partition, low, { ...parts, onFatal: life.fail });
      await ask('positions cannot be written', () => store.begin(partition, start), signal);
      kept = (await take())!;
    }
    if (kept.nextOffset < low) {
      const lost = { partition, from: kept.nextOffset, to: low - 1 };
      life.log.error(lost, 'pills left the log before they were posted: they are lost to webhooks');
      kept = { ...kept, nextOffset: low };
    }
    if (kept.snapshot.offset < low) kept = { ...kept, snapshot: { ...kept.snapshot, offset: low } };
    signal.throwIfAborted();
    const state = createWebhookPartition({
      ...{ partition, kept, settings, schemas, log: life.log },
      audienceOf: (pill) => audience.of(pill),
      offer: (listener, pill) => laneOf(listener).offer(pill),
    });
    partitions.set(partition, state);
    life.log.info({ partition, from: kept.nextOffset, judged: state.start }, 'partition restored');
    return { start: state.start, from: warmUpFrom(state.start, low, settings) };
  };

  const unsettled = () =>
    [...partitions.values()].reduce((sum, { frontier }) => sum + frontier.size, 0);

  const onRecords = async (
    partition: number,
    records: readonly LogRecord[],
    { signal }: Ownership,
  ) => {
    const state = partitions.get(partition);
    if (state === undefined) return;
    try {
      for (let at = 0; at < records.length; at += RUN_RECORDS_MAX) {
        const run = records.slice(at, at + RUN_RECORDS_MAX);
        while (unsettled() > LIMITS.unsettledMax) await sleep(BUSY_CHECK_MS, undefined, { signal });
        await positions.allowTries(partition, state, run.at(-1)!.offset + 1, signal);
        await state.apply(run, signal);
      }
      unsettledGauge.set(unsettled());
    } catch (error) {
      if (error instanceof FencedError) lose([partition]);
      // Revoked in the middle: the next owner starts from the position.
      else if (!signal.aborted) throw error;
    }
  };

  const group = joinGroup({
    client,
    topic: topicName(namespace, 'pills'),
    groupId: groupName(namespace, 'webhooks'),
    concurrency: settings.partitions,
    pace: STEADY,
    onAssigned: restore,
    onRecords,
    onRevoked(partition) {
      // When we stop, what waits is ours to keep until another one has taken it: the fence decides.
      if (isStopping) return;
      partitions.get(partition)?.lose();
      partitions.delete(partition);
    },
    onFatal: life.fail,
  });

  const worker = await ask('the queue cannot be opened; waiting', () =>
    startWorker({
      ...{ databaseUrl, namespace, db, log: life.log, onFatal: life.fail },
      drain: (endpointId) =>
        drain(endpointId, { db, audience, attempter, keeper, share, signal: life.signal }),
    }),
  );
  const repetitions = [
    backlog.start(audience),
    startEvents(db, audience, life.log),
    startFailing(db, life.log, config.disableAfterS),
  ];
  life.onStop('dispatcher', async () => {
    isStopping = true;
    await group.close();
    const empty = Promise.all([...lanes.values()].map((lane) => lane.close()));
    await Promise.race([empty, sleep(LANES_DEADLINE_MS)]);
    await sender.close();
    await worker.close();
    await Promise.all(repetitions.map((one) => one.close()));
    await keeper.close(KEEPER_DEADLINE_MS);
    await positions.close();
    await positions.flush(true).catch((error) => life.log.warn({ err: error }, 'not flushed'));
    await health.close();
  });
  life.readyWhen(() => (group.isJoined() ? undefined : 'not in the consumer group'));
  life.readyWhen(() => (keeper.isHealthy() ? undefined : 'messages cannot be kept'));
}
