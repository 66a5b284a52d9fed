import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openProducer } from '../../lib/kafka/producer.ts';
import { createEncoder, type LatestPill } from '../../schemas/avro.ts';
import { partitionOf } from '../../schemas/partition.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import {
  makePill,
  openPillWriter,
  type PillWriter,
  readLatest,
  readRejected,
} from '../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';

let namespace: Namespace;
let writer: PillWriter;
let latest: TestProcess;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  await latest.ready();
});

afterAll(async () => {
  await latest?.stop();
  await writer?.close();
});

/** Writes pills and waits until the processor has read past them. @returns rows by symbol */
async function settle(pills: readonly PillRecord[]): Promise<Map<string, LatestPill>> {
  const acks = await writer.write(pills);
  const last = acks.at(-1)!;
  return waitFor('the latest processor', async () => {
    const rows = new Map<string, LatestPill>();
    let reached = false;
    for (const row of await readLatest(namespace)) {
      rows.set(row.symbol, row);
      const partition = partitionOf(row.symbol, namespace.settings.partitions);
      if (partition === last.partition && row.processed_offset >= last.offset) reached = true;
    }
    return reached && rows;
  });
}

const SECOND = 1_000_000;

describe('latest', () => {
  test('a late pill never replaces a newer one, and moves last_offset', async () => {
    const now = Date.now() * 1000;
    const symbol = 'LATE.T';
    const acks = await writer.write([makePill({ symbol, timestamp: now })]);
    const rows = await settle([makePill({ symbol, timestamp: now - 10 * SECOND })]);
    expect(rows.get(symbol)).toMatchObject({
      offset: acks[0]!.offset,
      timestamp: now,
      last_offset: acks[0]!.offset + 1,
      prev_offset: null,
    });
  });

  test('a repeat has no effect, but moves the processed offset', async () => {
    const pill = makePill({ symbol: 'REPEAT.T' });
    await settle([pill]);
    const rows = await settle([pill]);
    const row = rows.get('REPEAT.T')!;
    expect(row.id).toBe(pill.id);
    expect(row.last_offset).toBe(row.offset);
  });

  test('a backfill pill is in latest, but is never the prev of another', async () => {
    const symbol = 'OLD.T';
    const rows = await settle([
      makePill({ symbol, timestamp: Date.UTC(2019, 0, 1) * 1000 }),
      makePill({ symbol, timestamp: Date.UTC(2019, 0, 2) * 1000 }),
    ]);
    expect(rows.get(symbol)).toMatchObject({
      timestamp: Date.UTC(2019, 0, 2) * 1000,
      backfill: true,
      last_offset: null,
      prev_offset: null,
    });
  });

  test.each([
    ['empty', Buffer.alloc(0), 'avro_empty'],
    ['JSON', Buffer.from('{"id":"x"}'), 'avro_no_magic'],
    ['unknown schema', Buffer.from([0, 0x7f, 0xff, 0xff, 0x01, 1, 2, 3]), 'schema_unknown'],
    ['200 KiB of noise', Buffer.alloc(200_000, 7), 'avro_no_magic'],
  ])(
    'poison (%s) is rejected with its origin and never stops the partition',
    async (_, value, code) => {
      const partition = partitionOf('7203.T', namespace.settings.partitions);
      const ack = await writer.writeRaw(partition, '7203.T', value);
      await settle([makePill({ symbol: '7203.T' })]);
      const found = (await readRejected(namespace)).filter((row) => row.offset === ack.offset);
      expect(found).toHaveLength(1);
      expect(found[0]).toMatchObject({ partition, code, epoch: namespace.settings.epoch });
      expect(found[0]!.value_bytes).toBe(value.length);
      expect(found[0]!.value!.length).toBe(Math.min(value.length, 65_536));
    },
  );

  test('bad fields, the wrong partition and a conflict are rejected by name', async () => {
    const encode = createEncoder('pill', await namespace.schemas.register('pills'));
    const symbol = '0700.HK';
    const partition = partitionOf(symbol, namespace.settings.partitions);
    const other = (partition + 1) % namespace.settings.partitions;
    const first = makePill({ symbol });
    const wrong = await writer.writeRaw(other, symbol, encode(makePill({ symbol })));
    const [, bad, conflict] = await writer.write([
      first,
      makePill({ symbol, confidence: 101 }),
      { ...first, confidence: 1 },
    ]);
    const key = await writer.writeRaw(partition, 'OTHER', encode(makePill({ symbol })));
    const kind = await writer.writeRaw(partition, symbol, encode(makePill({ symbol, kind: 'x' })));
    const rows = await settle([makePill({ symbol, confidence: 2 })]);
    expect(rows.get(symbol)!.confidence).toBe(2);
    await waitFor('the wrong partition', async () => {
      const rejected = await readRejected(namespace);
      const code = (ack: { partition: number; offset: number } | undefined) =>
        rejected.find((row) => row.partition === ack!.partition && row.offset === ack!.offset)
          ?.code;
      if (code(wrong) === undefined) return false;
      expect([code(wrong), code(bad), code(conflict), code(key), code(kind)]).toEqual([
        'wrong_partition',
        'pill_invalid',
        'id_conflict',
        'pill_invalid',
        'kind_unknown',
      ]);
      return true;
    });
  });

  test('after an older row of a zombie, our row is written again', async () => {
    const symbol = '9988.HK';
    const rows = await settle([makePill({ symbol }), makePill({ symbol })]);
    const ours = rows.get(symbol)!;
    const stale = {
      ...ours,
      offset: ours.offset - 1,
      last_offset: ours.offset - 1,
      timestamp: ours.timestamp - SECOND,
    };
    const encode = createEncoder('latest-pill', await namespace.schemas.register('latest'));
    const producer = await openProducer(namespace.client);
    const partition = partitionOf(symbol, namespace.settings.partitions);
    const topic = topicName(namespace.name, 'latest');
    await producer.produce([{ topic, partition, key: symbol, value: encode(stale) }]);
    await producer.close();
    await waitFor('the row to be written again', async () => {
      const all = (await readLatest(namespace)).filter((row) => row.symbol === symbol);
      return all.some((row) => row.offset === stale.offset) && all.at(-1)!.offset === ours.offset;
    });
  });

  test('after kill -9 and a restart every pill counts once, prev continues, repeats stay repeats', async () => {
    const symbol = 'KILL.T';
    const pills = Array.from({ length: 400 }, () => makePill({ symbol }));
    await writer.write(pills.slice(0, 200));
    await latest.kill();
    latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
    const rows = await settle([...pills.slice(150, 200), ...pills.slice(200)]);
    const row = rows.get(symbol)!;
    expect(row.id).toBe(pills.at(-1)!.id);
    expect(row.prev_offset).toBe(row.offset - 1);
    const conflicts = (await readRejected(namespace)).filter(
      ({ key }) => key?.toString() === symbol,
    );
    expect(conflicts).toEqual([]);
  });
});
