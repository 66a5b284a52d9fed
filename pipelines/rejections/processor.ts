import {
  type ClickHouse,
  customersDatabaseName,
  openClickHouse,
} from '../../lib/clickhouse/clickhouse-client.ts';
import { decodeWith } from '../../lib/kafka/decode.ts';
import { joinGroup, type Ownership } from '../../lib/kafka/group.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import type { Pace } from '../../lib/kafka/pace.ts';
import type { OffsetBounds } from '../../lib/kafka/topics.ts';
import { createDecoder, type SchemaName, type SchemaValues } from '../../schemas/avro.ts';
import { groupName, TOPICS, topicName } from '../../schemas/topic-catalogue.ts';
import type { ProcessorContext } from '../config.ts';
import { retryOfClickHouse } from '../retry-clickhouse.ts';
import { type Rows, rowsOfRejected, rowsOfReport } from './rejection-rows.ts';

/** Once a second is enough for readers, and costs next to nothing while nothing is refused. */
const PACE: Pace = { minBytes: 256 * 1024, waitMs: 1_000, pauseMs: 0 };

/**
 * Stores what was refused in ClickHouse: rejected records, and the reports of ingest. Its steps:
 * 1. restore: ask the table of progress for the position; what the topic has lost is skipped;
 * 2. decode each record; one that cannot be decoded is logged and skipped;
 * 3. insert the rows, then the position. A crash in between repeats rows, which the tables keep once.
 */
export function startRejections(context: ProcessorContext): void {
  const { config, life } = context;
  const database = customersDatabaseName(config.namespace);
  const clickhouse = openClickHouse({ url: config.clickhouseUrl, database });
  life.onStop('clickhouse of rejections', () => clickhouse.close());
  follow(context, clickhouse, 'rejected', 'rejected-record', rowsOfRejected);
  follow(context, clickhouse, 'refused', 'refusal-report', rowsOfReport);
}

function follow<N extends SchemaName>(
  { life, client, schemas, config: { namespace } }: ProcessorContext,
  clickhouse: ClickHouse,
  topic: 'rejected' | 'refused',
  schema: N,
  rowsOf: (value: SchemaValues[N]) => readonly Rows[],
): void {
  const { log } = life;
  const decoder = createDecoder(schema, schemas.writerSchemas);
  const retry = retryOfClickHouse(log, { topic });
  const restore = async (partition: number, { low, high }: OffsetBounds, { signal }: Ownership) => {
    const position = await retry(() => readPosition(clickhouse, topic, partition), signal);
    const next = position === undefined ? low : position + 1;
    // Of what retention has cut, or of a topic made again, nothing can be read.
    const start = next >= low && next <= high ? next : low;
    return { start, from: start };
  };
  const onRecords = async (
    partition: number,
    records: readonly LogRecord[],
    { signal }: Ownership,
  ) => {
    const last = records.at(-1);
    if (last === undefined) return;
    const found: Rows[] = [];
    for (const { value, offset } of records) {
      const decoded = await decodeWith(decoder, schemas, value, { signal, log });
      if (decoded.ok) found.push(...rowsOf(decoded.value));
      else log.error({ topic, offset, reason: decoded.reason }, 'a record cannot be decoded');
    }
    await retry(async () => {
      await insertRows(clickhouse, found);
      await writePosition(clickhouse, topic, partition, last.offset);
    }, signal);
  };
  const group = joinGroup({
    client,
    topic: topicName(namespace, topic),
    groupId: groupName(namespace, `rejections.${topic}`),
    concurrency: 1,
    pace: PACE,
    onAssigned: restore,
    async onRecords(partition, records, ownership) {
      await onRecords(partition, records, ownership).catch((error) => {
        // Revoked meanwhile: the next owner reads the records again.
        if (!ownership.signal.aborted) throw error;
      });
    },
    onRevoked: () => undefined,
    onFatal: life.fail,
  });
  life.onStop(`group of ${topic}`, group.close);
}

async function readPosition(
  clickhouse: ClickHouse,
  topic: 'rejected' | 'refused',
  partition: number,
): Promise<number | undefined> {
  const result = await clickhouse.query({
    query: `SELECT maxOrNull(offset) AS last FROM outcomes_progress
            WHERE topic = {topic:String} AND partition = {partition:UInt16}`,
    query_params: { topic: TOPICS[topic].name, partition },
    format: 'JSONEachRow',
    clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
  });
  const [row] = await result.json<{ last: number | null }>();
  return row?.last ?? undefined;
}

async function writePosition(
  clickhouse: ClickHouse,
  topic: 'rejected' | 'refused',
  partition: number,
  offset: number,
): Promise<void> {
  await clickhouse.insert({
    table: 'outcomes_progress',
    format: 'JSONEachRow',
    values: [{ topic: TOPICS[topic].name, partition, offset }],
  });
}

async function insertRows(clickhouse: ClickHouse, found: readonly Rows[]): Promise<void> {
  for (const table of ['rejected', 'refusal_counts'] as const) {
    const values = found.flatMap((rows) => (rows.table === table ? rows.values : []));
    if (values.length > 0) await clickhouse.insert({ table, format: 'JSONEachRow', values });
  }
}
