import {
  createCounter,
  createGauge,
  createHistogram,
  LATENCY_BUCKETS_S,
} from '../../lib/metrics.ts';
import type { EffectivePill } from '../../lib/order/judge.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { Connection } from './live/connection.ts';

export interface StreamMetrics {
  onTick(sentAt: Micros, pills: readonly EffectivePill[], deliveries: number): void;
  onRecord(outcome: 'effect' | 'repeat' | 'rejected'): void;
  onOpened(): void;
  onClosed(connection: Connection, reason: string): void;
}

/** Registers the process's metrics; what connections count themselves is read when asked for. */
export function createStreamMetrics(connections: () => Iterable<Connection>): StreamMetrics {
  const gone = { framesSent: 0, pillsSent: 0, pillsSkipped: 0 };
  const total = (name: keyof typeof gone) => {
    let sum = gone[name];
    for (const { outbox } of connections()) sum += outbox[name];
    return sum;
  };
  const counted = (name: string, help: string, what: keyof typeof gone) =>
    createCounter({
      name,
      help,
      collect() {
        this.reset();
        this.inc(total(what));
      },
    });
  counted('pillole_stream_frames_sent_total', 'Frames given to sockets.', 'framesSent');
  counted('pillole_stream_pills_sent_total', 'Pills sent, once for each connection.', 'pillsSent');
  counted('pillole_stream_pills_skipped_total', 'Pills left out of latest mode.', 'pillsSkipped');
  createGauge({
    name: 'pillole_stream_connections',
    help: 'Open connections.',
    collect() {
      this.set([...connections()].length);
    },
  });
  createGauge({
    name: 'pillole_stream_queue_bytes',
    help: 'Bytes that wait for slow readers, ours and inside uWS.',
    collect() {
      let bytes = 0;
      for (const connection of connections()) bytes += connection.queueBytes;
      this.set(bytes);
    },
  });
  const opened = createCounter({
    name: 'pillole_stream_opened_total',
    help: 'Connections opened.',
  });
  const closed = createCounter({
    name: 'pillole_stream_closed_total',
    help: 'Connections closed, by reason; peer when the other side or the network did.',
    labelNames: ['reason'] as const,
  });
  const records = createCounter({
    name: 'pillole_stream_records_total',
    help: 'Records of the pills topic read after the start, by what became of them.',
    labelNames: ['outcome'] as const,
  });
  const latency = createHistogram({
    name: 'pillole_stream_receive_to_send_seconds',
    help: 'From received_at to sent_at, once for each pill that somebody got.',
    buckets: LATENCY_BUCKETS_S,
  });
  const deliveriesTotal = createCounter({
    name: 'pillole_stream_deliveries_total',
    help: 'Pills handed to connections, held back or not.',
  });
  return {
    onTick(sentAt, pills, deliveries) {
      deliveriesTotal.inc(deliveries);
      for (const { received_at: receivedAt } of pills) {
        latency.observe(Math.max(0, sentAt - receivedAt) / 1e6);
      }
    },
    onRecord: (outcome) => records.inc({ outcome }),
    onOpened: () => opened.inc(),
    onClosed({ outbox }, reason) {
      closed.inc({ reason });
      gone.framesSent += outbox.framesSent;
      gone.pillsSent += outbox.pillsSent;
      gone.pillsSkipped += outbox.pillsSkipped;
    },
  };
}
