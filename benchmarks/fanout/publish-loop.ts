// The baseline of the fan-out benchmark: what a minimal uWS server does. It reads the pills topic by
// our own consumer, at the pace of our stream process, makes one frame of each pill, and publishes it
// once. It knows no access, limits, late or repeated pills, snapshots, heartbeats, slow readers.
//
//   node publish-loop.js     KAFKA_BROKERS, SCHEMA_REGISTRY_URL, PILLOLE_NAMESPACE, STREAM_PORT
import * as uWS from 'uWebSockets.js';
import { nowMicros } from '../../lib/clock.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { QUICK } from '../../lib/kafka/pace.ts';
import { openTail } from '../../lib/kafka/tail.ts';
import { fetchOffsetBounds } from '../../lib/kafka/topics.ts';
import { silentLog } from '../../lib/log.ts';
import { createDecoder } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { formatCursor } from '../../schemas/position.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { formatTimestamp, type Micros } from '../../schemas/timestamp.ts';
import { topicName } from '../../schemas/topics.ts';

const {
  KAFKA_BROKERS = '',
  SCHEMA_REGISTRY_URL = '',
  PILLOLE_NAMESPACE = '',
  STREAM_PORT = '',
} = process.env;
const client = createKafkaClient(KAFKA_BROKERS.split(','), 'bench-loop', silentLog);
const schemas = createSchemaClient(SCHEMA_REGISTRY_URL, PILLOLE_NAMESPACE);
await schemas.register('pills');
const decoder = createDecoder('pill', schemas.writerSchemas);

const app = uWS.App();
app.ws('/api/stream', {
  compression: 0,
  maxBackpressure: 1024 * 1024, // by default 64 KiB, above which it drops frames in silence
  message(socket, message) {
    const { symbols } = JSON.parse(Buffer.from(message).toString()) as { symbols: string[] };
    for (const symbol of symbols) socket.subscribe(symbol);
  },
});
app.get('/ready', (response) => void response.end());

const topic = topicName(PILLOLE_NAMESPACE, 'pills');
const bounds = await fetchOffsetBounds(client, topic);
await openTail({
  client,
  topic,
  groupPrefix: `${PILLOLE_NAMESPACE}.bench-loop`,
  from: new Map([...bounds].map(([partition, { high }]) => [partition, high])),
  pace: QUICK,
  onRecords(partition, records) {
    for (const { offset, value, appendedAt } of records) {
      const decoded = decoder.decode(value);
      if (!('value' in decoded)) throw new Error('Not a pill.');
      const { value: pill } = decoded;
      // In some runs all sockets want every symbol, in others a few: a pill is published once.
      const room = app.numSubscribers('*') > 0 ? '*' : pill.symbol;
      app.publish(room, frameOf(formatCursor(partition, offset), pill, appendedAt));
    }
  },
  onFatal(error) {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
});

app.listen('127.0.0.1', Number(STREAM_PORT), (listening) => {
  if (listening === false) throw new Error(`Port ${STREAM_PORT} is taken.`);
});
process.on('SIGTERM', () => process.exit(0));

/** The `pill` frame of our stream, field by field: as many bytes. */
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
