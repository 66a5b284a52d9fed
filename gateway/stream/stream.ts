import { setTimeout as sleep } from 'node:timers/promises';
import { signGapFillGrant } from '../../domain/access/gap-fill-grant.ts';
import { openKeyring } from '../../domain/access/keyring.ts';
import { networkOf } from '../../domain/access/network-of.ts';
import type { Pepper } from '../../domain/access/pepper.ts';
import { countSecurityEvent } from '../../domain/access/security-events.ts';
import { openAuthenticator } from '../../domain/authentication/open-authenticator.ts';
import { dedicatedPath } from '../../domain/dedicated/dedicated-url.ts';
import { openOverridesFile } from '../../domain/market/calendars/overrides-file.ts';
import { createVenueOf } from '../../domain/market/calendars/venue-rules.ts';
import { openMarkets } from '../../domain/market/quiet/open-markets.ts';
import type { KafkaClient } from '../../lib/kafka/kafka-client.ts';
import type { Context } from '../../lib/kafka/log-context.ts';
import { fetchOffsetBounds, fetchOffsetsAt } from '../../lib/kafka/topics.ts';
import type { Lifecycle } from '../../lib/run/run-process.ts';
import { createPartitioner } from '../../schemas/partition.ts';
import type { Offsets } from '../../schemas/position.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createClientAddress } from '../http/client-address.ts';
import { createAccountConnections } from './admission/account-connections.ts';
import { createAdmission, hasCredential } from './admission/admission.ts';
import type { StreamKeyring } from './admission/authenticate.ts';
import { createConnectionLimiter } from './admission/connection-limiter.ts';
import { openConnectionRecords } from './admission/connection-records.ts';
import { PendingConnection } from './admission/pending-connection.ts';
import { createChaos, withoutChaos } from './chaos/chaos.ts';
import type { StreamConfig } from './config.ts';
import { followSupervisor } from './follow-supervisor.ts';
import { drainConnections } from './hub/drain-connections.ts';
import { createHub } from './hub/hub.ts';
import { createConnections, HEARTBEAT_SLOT_MS } from './hub/open-connections.ts';
import type { ConnectionDeps } from './hub/stream-connection.ts';
import { LIMITS } from './limits.ts';
import { createLogAvailability } from './log/log-availability.ts';
import { type LogFeed, openLogFeed } from './log/log-feed.ts';
import { readSpans } from './log/span-reader.ts';
import { createStreamMetrics, receiveToSend } from './metrics.ts';
import { isSecurityClose } from './protocol/close-codes.ts';
import { statusFrame } from './protocol/server-frames.ts';
import { createQuiet } from './quiet/quiet.ts';
import { createResumer, type Resumer } from './replay/resume.ts';
import { createResumeWindow } from './replay/resume-window.ts';
import { startServer } from './wire/websocket-server.ts';

const STREAM_PATH = '/api/stream';
const LOG_CHECK_MS = 500;
const CHAOS_TICK_MS = 100;
const QUIET_TICK_MS = 1_000;
/** Access that expires by the clock ends within this time. */
const SWEEP_MS = 500;

interface StreamOptions extends Context<StreamConfig & { readonly pepper: Pepper }> {
  readonly nowMicros: () => Micros;
}

const nowMs = () => performance.now();
const schedule = (action: () => void, delayMs: number) =>
  void (delayMs < 1 ? setImmediate(action) : setTimeout(action, delayMs));

/**
 * Builds the process: feed → hub → connections → server. It stops in reverse: no new connections,
 * drain, feed.
 * @throws when the log no longer holds what the feed must read, the calendar overrides cannot be
 *   read, or the address is taken.
 */
export async function openStream(options: StreamOptions): Promise<void> {
  const { config, life } = options;
  const { dedicated } = config;
  const { log } = life;
  const availability = createLogAvailability(LIMITS.logDownAfterMs);
  const isReceiving = () => notReady() === undefined && availability.down() === undefined;
  const fanOut = openFanOut(options, isReceiving);
  const { hub, connections, metrics } = fanOut;
  const feed = await openFeed(options, fanOut);
  const notReady = readiness(feed, life);
  life.readyWhen(notReady);
  startNotices(options, fanOut, feed);

  const limiter = createConnectionLimiter(LIMITS, nowMs);
  const access = openAccess(options);
  const { accounts, records, keyring } = access;
  const resumer = withoutChaos(openResumer(options, feed), options.settings.partitions);
  life.onStop('resumer', resumer.close);
  const { covers: isInResumeWindow } = await openResumeWindow(options, feed);
  const admission = createAdmission({
    keyring,
    connectionDeps: {
      ...createConnectionDeps(options, fanOut, access, availability.down),
      latestPills: feed.latestPills,
      replayBuffer: feed.replayBuffer,
      resumer,
      isInResumeWindow,
    },
    limiter,
    accounts,
    onOpened(connection) {
      connections.add(connection);
      records.opened(connection);
      metrics.onOpened();
    },
    origins: config.origins,
    log,
    notReady,
  });
  const path = dedicated === undefined ? STREAM_PATH : dedicatedPath(dedicated.name);
  const server = await startServer({
    host: config.host,
    port: config.port,
    path,
    otherPaths: [dedicatedPath('*'), ...(dedicated === undefined ? [] : [STREAM_PATH])],
    limits: LIMITS,
    log,
    clientAddress: createClientAddress(config.trustedProxies, log),
    publicUrl: config.publicUrl,
    mayOpen: (handshake) => limiter.mayOpen(networkOf(handshake.address), hasCredential(handshake)),
    open: (socket, handshake) => new PendingConnection(socket, handshake, admission),
    notReady,
  });
  life.onStop('server', server.close);
  log.info({ url: `ws://${config.host}:${server.port}${path}` }, 'listening');

  startTimer(life, 'access', accounts.sweep, SWEEP_MS);
  startTimer(life, 'heartbeats', () => connections.tick(nowMs()), HEARTBEAT_SLOT_MS);
  watchLog(options, availability, feed.isConnected, fanOut.broadcast);
  life.onStop('connections', () => {
    server.stopListening();
    return drainConnections({ ...LIMITS, connections: connections.all, flush: hub.flush });
  });
  if (dedicated !== undefined) {
    const { offsets } = feed.latestPills;
    followSupervisor({ connections, offsets, notReady, nowMs, server });
  }
}

/** Announces outages of the log to all clients. */
function watchLog(
  { life, nowMicros }: StreamOptions,
  availability: ReturnType<typeof createLogAvailability>,
  isConnected: () => boolean,
  broadcast: (frame: Buffer) => void,
): void {
  const check = () => {
    const now = nowMicros();
    const change = availability.observe(isConnected(), now);
    if (change === undefined) return;
    life.log.warn({ state: change.state }, 'the log became unreachable or reachable');
    broadcast(statusFrame(now, change));
  };
  startTimer(life, 'log check', check, LOG_CHECK_MS);
}

function startTimer(life: Lifecycle, name: string, action: () => void, everyMs: number): void {
  const timer = setInterval(action, everyMs);
  life.onStop(name, () => clearInterval(timer));
}

type FanOut = ReturnType<typeof openFanOut>;

/** Opens the hub, the list of connections, and their observers. */
function openFanOut(
  { config, life, settings, nowMicros }: StreamOptions,
  isReceiving: () => boolean,
) {
  const hub = createHub({
    frameOutBytesMax: LIMITS.frameOutBytesMax,
    nowMicros,
    nowMs,
    schedule,
    onTick: (sentAt, pills, deliveries) => metrics.onTick(sentAt, pills, deliveries),
    onSubscribed: (subscriber, symbol) => quiet.onSubscribed(subscriber, symbol),
  });
  const connections = createConnections({
    heartbeatMs: LIMITS.heartbeatMs,
    startMs: nowMs(),
    beforeBeats: hub.flush,
    queueBytesMax: config.dedicated ? LIMITS.dedicatedQueueBytesMax : LIMITS.processQueueBytesMax,
  });
  const metrics = createStreamMetrics(connections.all);
  const broadcast = (frame: Buffer) => {
    hub.flush();
    for (const connection of [...connections.all()]) connection.send(frame);
  };
  const overrides = openOverridesFile(config.calendarOverrides, life.log);
  const quiet = createQuiet({
    markets: openMarkets(overrides, createVenueOf(config.venueRules), life),
    symbolsMax: settings.symbols_max,
    limits: LIMITS,
    nowMicros,
    schedule,
    isReceiving,
    subscribersNaming: hub.subscribersNaming,
    wildcardSubscribers: hub.wildcardSubscribers,
    broadcast,
  });
  return { hub, connections, metrics, quiet, broadcast };
}

async function openFeed(options: StreamOptions, { hub, quiet, metrics }: FanOut): Promise<LogFeed> {
  const { client, schemas, settings, life, config } = options;
  const feed = await openLogFeed({
    client,
    schemas,
    namespace: config.namespace,
    settings,
    log: life.log,
    signal: life.signal,
    replayBufferPillsMax: config.dedicated
      ? LIMITS.dedicatedReplayBufferPillsMax
      : LIMITS.replayBufferPillsMax,
    pauseMs: () => hub.spacingMs() - 1, // a timer may fire one ms late
    onPills(pills) {
      quiet.note(pills);
      hub.publish(pills);
    },
    onWarmed: quiet.warm,
    onRecord: metrics.onRecord,
    onFatal: life.fail,
  });
  life.onStop('feed', () => Promise.race([feed.close(), sleep(LIMITS.feedCloseMs)]));
  return feed;
}

/** Starts the notices of quiet symbols and the feed of `TEST:CHAOS`. */
function startNotices(
  { settings, nowMicros, life }: StreamOptions,
  { hub, quiet, connections }: FanOut,
  { latestPills }: LogFeed,
) {
  quiet.seed(latestPills);
  // Builds the calendars of all known symbols, some 10 ms each, before clients connect.
  quiet.generator(nowMicros());
  startTimer(life, 'quiet', quiet.tick, QUIET_TICK_MS);
  const { partitions: partition } = settings;
  const chaos = createChaos({ hub, partition, connections: connections.all, nowMicros });
  startTimer(life, 'chaos', chaos.tick, CHAOS_TICK_MS);
}

type Access = ReturnType<typeof openAccess>;

/** Opens the parts that handle accounts: the keyring, their connections, and the records of these. */
function openAccess({ config, life }: StreamOptions) {
  const { namespace, databaseUrl, pepper, dedicated } = config;
  const opened = openKeyring({ databaseUrl, namespace, pepper, log: life.log, name: 'stream' });
  life.onStop('keyring', opened.close);
  const { egress } = config;
  const authenticator = openAuthenticator({ keyring: opened, pepper, egress, log: life.log });
  const keyring: StreamKeyring = {
    ...opened,
    authenticator,
    onlyAccountId: dedicated?.accountId,
  };
  const accounts = createAccountConnections(keyring, Date.now, life.log);
  life.onStop('accounts', accounts.close);
  const records = openConnectionRecords({
    ...{ databaseUrl, namespace, pepper, log: life.log },
    latency: receiveToSend,
  });
  life.onStop('records', records.close);
  return { keyring, accounts, records };
}

function createConnectionDeps(
  { config, life, settings, nowMicros }: StreamOptions,
  { hub, quiet, connections, metrics }: FanOut,
  { accounts, records }: Access,
  logDown: ConnectionDeps['logDown'],
): Omit<ConnectionDeps, 'latestPills' | 'replayBuffer' | 'resumer' | 'isInResumeWindow'> {
  return {
    hub,
    limits: LIMITS,
    nowMicros,
    nowMs,
    later: (action) => void setImmediate(action),
    logDown,
    // While the log is unreachable, nothing is known about the generator.
    generator: (now) =>
      logDown() === undefined
        ? quiet.generator(now)
        : { ...quiet.generator(now), state: 'unknown' },
    partitionOf: createPartitioner(settings.partitions),
    grant(accountId, missed) {
      const endsAtS = Math.floor(Date.now() / 1000) + LIMITS.grantS;
      return signGapFillGrant({ accountId, ...missed }, endsAtS, config.pepper);
    },
    onFault: (error) => life.log.error({ err: error }, 'a connection failed'),
    onClosed(connection, reason) {
      connections.remove(connection);
      accounts.remove(connection);
      records.closed(connection);
      metrics.onClosed(connection, reason);
      if (isSecurityClose(reason)) countSecurityEvent(`socket_${reason}`, connection.address);
    },
  };
}

/** Opens the resume window, filled at once, since many clients resume at a new process. */
async function openResumeWindow({ client, config, life }: StreamOptions, { latestPills }: LogFeed) {
  const topic = topicName(config.namespace, 'pills');
  const window = createResumeWindow({
    latestPills,
    maxAgeS: LIMITS.resumeMaxAgeS,
    nowMs: Date.now,
    log: life.log,
    offsetsAt: (timeMs) => fetchOffsetsAt(client, topic, timeMs),
    bounds: () => fetchOffsetBounds(client, topic),
  });
  await window.refresh();
  startTimer(life, 'resume window', window.refresh, LIMITS.resumeWindowRefreshMs);
  return window;
}

/** Opens the resumer, which reads the log with consumers of its own. */
function openResumer(
  { client, schemas, settings, life, config }: StreamOptions,
  { latestPills, replayBuffer, partitions }: LogFeed,
): Resumer {
  const topic = topicName(config.namespace, 'pills');
  const reader = { client, schemas, settings, topic, latestPills, log: life.log };
  const { dedicatedLogReplayPillsMax, logReplayPillsMax } = LIMITS;
  return createResumer({
    latestPills,
    replayBuffer,
    limits: {
      ...LIMITS,
      logReplayPillsMax: config.dedicated ? dedicatedLogReplayPillsMax : logReplayPillsMax,
    },
    partitions: () => partitions,
    offsetsAt: (timeMs) => fetchOffsetsAt(client, topic, timeMs),
    logStarts: createLogStarts(client, topic),
    readSpans: (spans, onPill, signal) => readSpans(reader, spans, onPill, signal),
    onError: (error) => life.log.warn({ err: error }, 'a resume could not be prepared'),
  });
}

/** The first offsets that the log holds, cached for some seconds. */
function createLogStarts(client: KafkaClient, topic: string): () => Promise<Offsets> {
  let starts: Promise<Offsets> | undefined;
  const forget = () => {
    starts = undefined;
  };
  return () => {
    if (starts !== undefined) return starts;
    starts = fetchOffsetBounds(client, topic).then(
      (bounds) => new Map([...bounds].map(([partition, { low }]) => [partition, low])),
    );
    starts.then(() => setTimeout(forget, LIMITS.logStartCacheMs).unref(), forget);
    return starts;
  };
}

/** @returns why the process is not ready: it must have read the log to its end */
function readiness(feed: LogFeed, life: Lifecycle): () => string | undefined {
  let caughtUp = false;
  void feed.caughtUp.then(() => {
    caughtUp = true;
  });
  return () => {
    if (life.signal.aborted) return 'stopping';
    return caughtUp ? undefined : 'reading the log to its end';
  };
}
