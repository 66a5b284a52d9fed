import { setTimeout as sleep } from 'node:timers/promises';
import { signGrant } from '../../lib/access/grant.ts';
import { openKeyring } from '../../lib/access/keyring.ts';
import { createVenueOf } from '../../lib/calendar/venue-rules.ts';
import { dedicatedPath } from '../../lib/dedicated/address.ts';
import type { KafkaClient } from '../../lib/kafka/client.ts';
import { fetchOffsetBounds, fetchOffsetsAt } from '../../lib/kafka/topics.ts';
import type { Life } from '../../lib/run.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import { createPartitioner } from '../../schemas/partition.ts';
import type { Offsets } from '../../schemas/position.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { groupName, topicName } from '../../schemas/topics.ts';
import { withoutChaos } from './chaos/chaos.ts';
import type { StreamConfig } from './config.ts';
import { followSupervisor } from './dedicated.ts';
import { createAdmission } from './door/admission.ts';
import { createDoor } from './door/door.ts';
import { Doorway } from './door/doorway.ts';
import { drainConnections } from './door/drain.ts';
import { createHouse } from './door/house.ts';
import type { Gate } from './door/member.ts';
import { createMembers } from './door/members.ts';
import { openRecords } from './door/records.ts';
import { createSessions, HEARTBEAT_SLOT_MS } from './door/sessions.ts';
import { LIMITS } from './limits.ts';
import { statusFrame } from './live/frames.ts';
import { createHub } from './live/hub.ts';
import { createStreamMetrics } from './metrics.ts';
import { type Feed, openFeed } from './past/feed.ts';
import { createLogWatch } from './past/log-watch.ts';
import { readPast } from './past/past.ts';
import { createPromised } from './past/promised.ts';
import { createResumeDesk, type ResumeDesk } from './past/resume.ts';
import { openQuiet } from './quiet/open-quiet.ts';
import { startServer } from './wire/server.ts';

const STREAM_PATH = '/api/stream';
const LOG_WATCH_MS = 500;
/** Rights that end by the clock end this late at the most. */
const SWEEP_MS = 500;

export interface StreamOptions {
  readonly config: StreamConfig & { readonly pepper: Buffer };
  readonly life: Life;
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly settings: TopicSettings;
  readonly nowMicros: () => Micros;
}

/**
 * Builds the process: feed → hub → connections → server. Stopped in reverse: no new connections,
 * drain, feed.
 * @throws when the log no longer holds what the feed must read, or the address is taken.
 */
export async function openStream(options: StreamOptions): Promise<void> {
  const { config, life, nowMicros } = options;
  const { dedicated } = config;
  const nowMs = () => performance.now();
  const hub = createHub({
    frameOutBytesMax: LIMITS.frameOutBytesMax,
    nowMicros,
    nowMs,
    schedule: (tick, delayMs) =>
      void (delayMs < 1 ? setImmediate(tick) : setTimeout(tick, delayMs)),
    onTick: (sentAt, pills, deliveries) => metrics.onTick(sentAt, pills, deliveries),
    onSubscribed: (seat, symbol) => quiet.onSubscribed(seat, symbol),
  });
  const sessions = createSessions({
    heartbeatMs: LIMITS.heartbeatMs,
    startMs: nowMs(),
    beforeBeats: hub.flush,
    queueBytesMax: dedicated ? LIMITS.dedicatedQueueBytesMax : LIMITS.processQueueBytesMax,
  });
  const metrics = createStreamMetrics(sessions.all);
  const quiet = openQuiet({
    ...{ life, hub, connections: sessions.all, settings: options.settings, nowMicros },
    overridesPath: config.calendarOverrides,
    venueOf: createVenueOf(config.venueRules),
    isHearing: () => notReady() === undefined && watch.down() === undefined,
  });

  const feed = await openFeed({
    client: options.client,
    schemas: options.schemas,
    namespace: config.namespace,
    settings: options.settings,
    log: life.log,
    signal: life.signal,
    backlogPillsMax: dedicated ? LIMITS.dedicatedBacklogPillsMax : LIMITS.backlogPillsMax,
    pauseMs: () => hub.spacingMs() - 1, // a timer fires up to one late
    onPills(pills) {
      quiet.note(pills);
      hub.publish(pills);
    },
    onWarmed: quiet.warm,
    onRecord: metrics.onRecord,
    onFatal: life.fail,
  });
  life.onStop('feed', () => Promise.race([feed.close(), sleep(LIMITS.feedCloseMs)]));
  const notReady = readiness(feed, life);
  life.readyWhen(notReady);

  const watch = createLogWatch(LIMITS.logDownAfterMs);
  quiet.begin(feed.board);
  const admission = createAdmission(LIMITS, nowMs);
  const { namespace, databaseUrl, pepper } = config;
  const keyring = openKeyring({ databaseUrl, namespace, pepper, log: life.log, name: 'stream' });
  life.onStop('keyring', keyring.close);
  const gate: Gate = { ...keyring, onlyAccountId: dedicated?.accountId };
  const members = createMembers(gate, Date.now, life.log);
  life.onStop('members', members.close);
  const records = openRecords({ databaseUrl, namespace, log: life.log });
  life.onStop('records', records.close);
  const resume = withoutChaos(openResume(options, feed), options.settings.partitions);
  life.onStop('resume', resume.close);
  const promised = await openPromised(options, feed);
  const house = createHouse({
    ...{ hub, board: feed.board, backlog: feed.backlog, nowMicros, nowMs },
    ...{ resume, members, sessions, metrics, records },
    partitionOf: createPartitioner(options.settings.partitions),
    isPromised: promised.covers,
    grant: (accountId, missed) => {
      const endsAtS = Math.floor(Date.now() / 1000) + LIMITS.grantS;
      return signGrant({ accountId, ...missed }, endsAtS, pepper);
    },
    // While the log is away nobody knows whether the generator is silent.
    generator: (now) =>
      watch.down() === undefined
        ? quiet.generator(now)
        : { ...quiet.generator(now), state: 'unknown' },
    logDown: watch.down,
    onFault: (error) => life.log.error({ err: error }, 'a connection failed'),
  });
  const { origins } = config;
  const door = createDoor({
    ...{ keyring: gate, house, admission, members, sessions, metrics, records, origins, notReady },
    log: life.log,
  });
  const path = dedicated === undefined ? STREAM_PATH : dedicatedPath(dedicated.name);
  const server = await startServer({
    host: config.host,
    port: config.port,
    path,
    limits: LIMITS,
    log: life.log,
    mayOpen: admission.mayOpen,
    open: (socket, handshake) => new Doorway(socket, handshake, door),
    notReady,
  });
  life.onStop('server', server.close);
  life.log.info({ url: `ws://${config.host}:${server.port}${path}` }, 'listening');

  const sweep = setInterval(members.sweep, SWEEP_MS);
  const wheel = setInterval(() => sessions.tick(nowMs()), HEARTBEAT_SLOT_MS);
  const watcher = setInterval(() => {
    const now = nowMicros();
    const change = watch.observe(feed.isConnected(), now);
    if (change === undefined) return;
    life.log.warn({ state: change.state }, 'the log is away or back');
    hub.flush();
    for (const connection of [...sessions.all()]) connection.tell(statusFrame(now, change));
  }, LOG_WATCH_MS);
  life.onStop('timers', () => {
    clearInterval(sweep);
    clearInterval(wheel);
    clearInterval(watcher);
  });
  life.onStop('connections', async () => {
    server.stopListening();
    await drainConnections({
      connections: sessions.all,
      flush: hub.flush,
      drainMs: LIMITS.drainMs,
      reconnectJitterMs: LIMITS.reconnectJitterMs,
    });
  });
  if (dedicated !== undefined) {
    followSupervisor({ sessions, offsets: () => feed.board.offsets, notReady, nowMs, server });
  }
}

/** Which positions are young enough: looked at now, since many come back to a new process. */
async function openPromised({ client, config, life }: StreamOptions, { board }: Feed) {
  const topic = topicName(config.namespace, 'pills');
  const promised = createPromised({
    ...{ board, maxAgeS: LIMITS.resumeMaxAgeS, nowMs: Date.now, log: life.log },
    offsetsAt: (timeMs) => fetchOffsetsAt(client, topic, timeMs),
    bounds: () => fetchOffsetBounds(client, topic),
  });
  await promised.refresh();
  const timer = setInterval(promised.refresh, LIMITS.promisedForMs);
  life.onStop('promised positions', () => clearInterval(timer));
  return promised;
}

/** The desk for those who come back, over this process's own way to the log. */
function openResume(options: StreamOptions, { board, backlog, partitions }: Feed): ResumeDesk {
  const { client, schemas, settings, life, config } = options;
  const topic = topicName(config.namespace, 'pills');
  const groupPrefix = groupName(config.namespace, 'stream-past');
  const place = { client, schemas, settings, topic, groupPrefix, board, log: life.log };
  const { dedicatedLogReplayPillsMax, logReplayPillsMax } = LIMITS;
  const limits = {
    ...LIMITS,
    logReplayPillsMax: config.dedicated ? dedicatedLogReplayPillsMax : logReplayPillsMax,
  };
  let begins: Promise<Offsets> | undefined;
  return createResumeDesk({
    ...{ board, backlog, limits },
    partitions: () => partitions,
    offsetsAt: (timeMs) => fetchOffsetsAt(client, topic, timeMs),
    begins() {
      if (begins !== undefined) return begins;
      const forget = () => {
        begins = undefined;
      };
      begins = fetchOffsetBounds(client, topic).then(
        (bounds) => new Map([...bounds].map(([partition, { low }]) => [partition, low])),
      );
      begins.then(() => setTimeout(forget, LIMITS.logBeginsForMs).unref(), forget);
      return begins;
    },
    readPast: (spans, onPill, signal) => readPast(place, spans, onPill, signal),
    onError: (error) => life.log.warn({ err: error }, 'a resume could not be prepared'),
  });
}

/** @returns what tells why the process cannot serve: only one that knows all there was does. */
function readiness(feed: Feed, life: Life): () => string | undefined {
  let caughtUp = false;
  void feed.caughtUp.then(() => {
    caughtUp = true;
  });
  return () => {
    if (life.signal.aborted) return 'stopping';
    return caughtUp ? undefined : 'reading the log to its end';
  };
}
