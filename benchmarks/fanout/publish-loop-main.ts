// The reference of the fan-out benchmark: a minimal uWS server. It reads the pills topic with our
// own consumer, at the pace of our stream process, makes one frame of each pill, and publishes it
// once. It has no access rules, limits, late or repeated pills, snapshots, heartbeats or handling of
// slow consumers.
import * as uWS from 'uWebSockets.js';
import { readCommonConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';
import { openContext } from '../../lib/kafka/log-context.ts';
import { QUICK } from '../../lib/kafka/pace.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import { runProcess } from '../../lib/run/run-process.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import { createDecoder } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { formatCursor } from '../../schemas/position.ts';
import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';

const readLoopConfig = (env: NodeJS.ProcessEnv) =>
  readConfig(env, (reader) => ({
    ...readCommonConfig(reader),
    port: reader.get('STREAM_PORT'),
  }));

await runProcess('loop', readLoopConfig, async (config, life) => {
  const { client, schemas } = await openContext('loop', config, life);
  await schemas.register('pills');
  const decoder = createDecoder('pill', schemas.writerSchemas);
  const app = uWS.App();
  app.ws('/api/stream', {
    compression: 0,
    maxBackpressure: 1024 * 1024, // the default is 64 KiB, above which it silently drops frames
    message(socket, message) {
      const { symbols } = JSON.parse(Buffer.from(message).toString()) as { symbols: string[] };
      for (const symbol of symbols) socket.subscribe(symbol);
    },
  });
  const topic = topicName(config.namespace, 'pills');
  const bounds = await fetchOffsetBounds(client, topic);
  const tail = await openTail({
    client,
    topic,
    from: new Map([...bounds].map(([partition, { high }]) => [partition, high])),
    pace: QUICK,
    onRecords(partition, records) {
      for (const { offset, value, appendedAt } of records) {
        const decoded = decoder.decode(value);
        if (!('value' in decoded)) throw new Error('Not a pill.');
        const { value: pill } = decoded;
        // Either all sockets of a run subscribe to `*`, or none: a pill is published once.
        const topicOfPill = app.numSubscribers('*') > 0 ? '*' : pill.symbol;
        app.publish(topicOfPill, frameOf(formatCursor(partition, offset), pill, appendedAt));
      }
    },
    onFatal: life.fail,
  });
  life.onStop('tail', tail.close);
  app.listen('127.0.0.1', config.port, (listening) => {
    if (listening === false) life.fail(new Error(`Port ${config.port} is taken.`));
  });
});

/** The `pill` frame of our stream, field by field, with as many bytes. */
function frameOf(cursor: string, pill: PillRecord, appendedAt: Micros): string {
  const { id, timestamp, symbol, market_state: state, confidence } = pill;
  return (
    `{"type":"pill","cursor":"${cursor}","prev":"${cursor}","id":${JSON.stringify(id)},` +
    `"timestamp":"${formatTimestamp(timestamp)}","symbol":"${symbol}",` +
    `"gross_spread_percent":${pill.gross_spread_percent},` +
    `"market_state":${JSON.stringify(state)},"confidence":${confidence},` +
    `"received_at":"${formatTimestamp(appendedAt)}","sent_at":"${formatTimestamp(nowMicros())}"}`
  );
}
