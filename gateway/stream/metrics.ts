import type { EffectivePill } from '../../domain/order/judge.ts';
import {
  createCounter,
  createGauge,
  createHistogram,
  LATENCY_BUCKETS_S,
} from '../../lib/metrics/metrics.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { Connection } from './hub/stream-connection.ts';

export const receiveToSend = createHistogram({
  name: 'pillole_stream_receive_to_send_seconds',
  help: 'From received_at to sent_at, once for each pill with a subscriber.',
  buckets: LATENCY_BUCKETS_S,
});

/** Registers the metrics of the process. */
export function createStreamMetrics(connections: () => Iterable<Connection>) {
  const addClosed = registerConnectionMetrics(connections);
  const opened = createCounter({
    name: 'pillole_stream_opened_total',
    help: 'Connections opened.',
  });
  const closed = createCounter({
    name: 'pillole_stream_closed_total',
    help: 'Connections closed, by reason; peer if the client or the network closed it.',
    labelNames: ['reason'] as const,
  });
  const records = createCounter({
    name: 'pillole_stream_records_total',
    help: 'Records of the pills topic read after the start, by outcome.',
    labelNames: ['outcome'] as const,
  });
  const deliveriesTotal = createCounter({
    name: 'pillole_stream_deliveries_total',
    help: 'Pills delivered to connections, including pills held back.',
  });
  return {
    onTick(sentAt: Micros, pills: readonly EffectivePill[], deliveries: number): void {
      deliveriesTotal.inc(deliveries);
      for (const { received_at: receivedAt } of pills) {
        receiveToSend.observe(Math.max(0, sentAt - receivedAt) / 1e6);
      }
    },
    onRecord: (outcome: 'effect' | 'repeat' | 'rejected'): void => records.inc({ outcome }),
    onOpened: (): void => opened.inc(),
    onClosed(connection: Connection, reason: string): void {
      closed.inc({ reason });
      addClosed(connection);
    },
  };
}

/** Registers the totals that connections count. @returns adds the counts of a closed connection */
function registerConnectionMetrics(connections: () => Iterable<Connection>) {
  const closed = { framesSent: 0, pillsSent: 0, pillsSkipped: 0 };
  const total = (name: string, help: string, field: keyof typeof closed) =>
    createCounter({
      name,
      help,
      collect() {
        this.reset();
        this.inc(sum(({ outbox }) => outbox[field], closed[field]));
      },
    });
  const gauge = (name: string, help: string, read: (connection: Connection) => number) =>
    createGauge({
      name,
      help,
      collect() {
        this.set(sum(read, 0));
      },
    });
  const sum = (read: (connection: Connection) => number, start: number) => {
    let all = start;
    for (const connection of connections()) all += read(connection);
    return all;
  };
  total('pillole_stream_frames_sent_total', 'Frames sent to sockets.', 'framesSent');
  total('pillole_stream_pills_sent_total', 'Pills sent, once for each connection.', 'pillsSent');
  total('pillole_stream_pills_skipped_total', 'Pills that latest mode left out.', 'pillsSkipped');
  gauge('pillole_stream_connections', 'Open connections.', () => 1);
  gauge(
    'pillole_stream_queue_bytes',
    'Bytes queued for slow readers, in our queues and inside uWS.',
    ({ queueBytes }) => queueBytes,
  );
  return ({ outbox }: Connection): void => {
    closed.framesSent += outbox.framesSent;
    closed.pillsSent += outbox.pillsSent;
    closed.pillsSkipped += outbox.pillsSkipped;
  };
}
