import type { KafkaClient } from '../../lib/kafka/client.ts';
import type { Life } from '../../lib/run.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { createAdmission, isOriginAllowed, type Refusal } from './admission.ts';
import type { StreamConfig } from './config.ts';
import { Connection, type House, type Socket } from './connection.ts';
import { drainConnections } from './drain.ts';
import { openFeed } from './feed.ts';
import { type StreamLimits, statusFrame } from './frames.ts';
import { createHub } from './hub.ts';
import { LIMITS } from './limits.ts';
import { createLogWatch } from './log-watch.ts';
import { createStreamMetrics } from './metrics.ts';
import { startServer } from './server.ts';
import { createSessions, HEARTBEAT_SLOT_MS } from './sessions.ts';

const STREAM_PATH = '/api/stream';
const LOG_WATCH_MS = 500;

/** What `welcome` tells; it must be what really holds. */
const TOLD_LIMITS: StreamLimits = {
  connections: LIMITS.connectionsPerAddressMax,
  symbols: LIMITS.symbolsPerConnectionMax,
  frames_in_per_s: LIMITS.framesInPerSecond,
  frame_in_bytes: LIMITS.frameInBytesMax,
  queue_bytes: LIMITS.queueBytesMax,
  resume_max_age_s: 0,
};

const ORIGIN_REFUSED: Refusal = {
  code: 'origin_refused',
  message: 'Until accounts exist only programs, and pages of this machine, may connect.',
  more: {},
};

function tellNotReady(why: string): Refusal {
  return { code: 'not_ready', message: `Not ready: ${why}.`, more: { retry_after_ms: 1_000 } };
}

export interface StreamOptions {
  readonly config: StreamConfig;
  readonly life: Life;
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly settings: TopicSettings;
  readonly nowMicros: () => Micros;
}

/**
 * Builds the process: feed → hub → connections → server. Stopped in reverse: no new connections,
 * drain, feed.
 */
export async function openStream(options: StreamOptions): Promise<void> {
  const { config, life, nowMicros } = options;
  const nowMs = () => performance.now();
  const later = (action: () => void) => void setImmediate(action);

  const hub = createHub({
    frameOutBytesMax: LIMITS.frameOutBytesMax,
    nowMicros,
    nowMs,
    schedule: (tick, delayMs) =>
      void (delayMs < 1 ? setImmediate(tick) : setTimeout(tick, delayMs)),
    onTick: (sentAt, pills, deliveries) => metrics.onTick(sentAt, pills, deliveries),
  });
  const sessions = createSessions({
    heartbeatMs: LIMITS.heartbeatMs,
    startMs: nowMs(),
    beforeBeats: hub.flush,
  });
  const metrics = createStreamMetrics(sessions.all);

  const feed = await openFeed({
    client: options.client,
    schemas: options.schemas,
    namespace: config.namespace,
    settings: options.settings,
    log: life.log,
    signal: life.signal,
    onPills: hub.publish,
    onRecord: metrics.onRecord,
    onFatal: life.fail,
  });
  life.onStop('feed', feed.close);
  let caughtUp = false;
  void feed.caughtUp.then(() => {
    caughtUp = true;
  });
  const notReady = () => {
    if (life.signal.aborted) return 'stopping';
    return caughtUp ? undefined : 'reading the log to its end';
  };
  life.readyWhen(notReady);

  const admission = createAdmission(LIMITS, nowMs);
  const watch = createLogWatch(LIMITS.logDownAfterMs);
  const house: House = {
    hub,
    board: feed.board,
    limits: LIMITS,
    told: TOLD_LIMITS,
    nowMicros,
    nowMs,
    later,
    logDown: watch.down,
    refusalOf({ address, origin }) {
      const full = admission.enter(address);
      if (!isOriginAllowed(origin)) return ORIGIN_REFUSED;
      const waits = notReady();
      return full ?? (waits === undefined ? undefined : tellNotReady(waits));
    },
    onClosed(connection, reason) {
      sessions.remove(connection);
      admission.leave(connection.address);
      metrics.onClosed(connection, reason);
    },
  };

  const open = (socket: Socket, origin: string) => {
    const connection = new Connection(socket, origin, house);
    sessions.add(connection);
    metrics.onOpened();
    return connection;
  };

  const server = await startServer({
    host: config.host,
    port: config.port,
    path: STREAM_PATH,
    limits: LIMITS,
    log: life.log,
    mayOpen: admission.mayOpen,
    open,
    notReady,
  });
  life.onStop('server', server.close);
  life.log.info({ url: `ws://${config.host}:${server.port}${STREAM_PATH}` }, 'listening');

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
    clearInterval(wheel);
    clearInterval(watcher);
  });
  life.onStop('connections', async () => {
    server.stopListening();
    await drainConnections({
      connections: sessions.all,
      flush: hub.flush,
      position: feed.board.position,
      drainMs: LIMITS.drainMs,
      reconnectJitterMs: LIMITS.reconnectJitterMs,
    });
  });
}
