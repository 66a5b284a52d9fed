import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ClickHouse,
  databaseName,
  openClickHouse,
} from '../../lib/clickhouse/clickhouse-client.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { isLongRun } from '../../testing/run-length.ts';
import { seededRandom, testSeed } from '../../testing/seed.ts';
import { waitFor } from '../../testing/wait.ts';

let namespace: Namespace;
let writer: PillWriter;
let analytics: TestProcess;
let clickhouse: ClickHouse;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  clickhouse = openClickHouse({
    url: namespace.engines.clickhouseUrl,
    database: databaseName(namespace.name),
  });
  analytics = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  await analytics.ready();
});

afterAll(async () => {
  await analytics?.stop();
  await writer?.close();
  await clickhouse?.close();
});

async function select<T>(query: string): Promise<T[]> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' });
  return result.json<T>();
}

async function countOf(symbol: string): Promise<{ rows: number; ids: number; late: number }> {
  const [row] = await select<Record<'rows' | 'ids' | 'late', string>>(
    `SELECT count() AS rows, uniqExact(id) AS ids, countIf(late) AS late
     FROM pills FINAL WHERE symbol = '${symbol}'`,
  );
  return { rows: Number(row!.rows), ids: Number(row!.ids), late: Number(row!.late) };
}

describe('analytics sink', () => {
  test('stores each field exactly, with its position', async () => {
    const pill = makePill({
      symbol: 'EXACT.T',
      id: 'quote" \'back\\slash, 東京',
      timestamp: Date.now() * 1000 - 123_457,
      gross_spread_percent: -0.1 - 0.2,
      market_state: '昼休み (lunch)',
      confidence: 1e-7,
    });
    const [ack] = await writer.write([pill]);
    const row = await waitFor('the row', async () => {
      const rows = await select<Record<string, unknown>>(
        `SELECT *, toUnixTimestamp64Micro(timestamp) AS at,
                toUnixTimestamp64Micro(received_at) AS received FROM pills WHERE symbol = 'EXACT.T'`,
      );
      return rows[0];
    });
    expect(row).toMatchObject({
      epoch: namespace.settings.epoch,
      partition: ack!.partition,
      id: pill.id,
      gross_spread_percent: pill.gross_spread_percent,
      market_state: pill.market_state,
      confidence: pill.confidence,
      source: 'test',
      late: false,
      backfill: false,
    });
    expect(Number(row.at)).toBe(pill.timestamp);
    expect(Number(row.received)).toBe(ack!.appendedAt);
    expect(Number(row.offset)).toBe(ack!.offset);
  });

  test('a time before 2001 is stored exactly', async () => {
    await writer.write([makePill({ symbol: 'Y1970.T', timestamp: 1_000_001 })]);
    const at = await waitFor('the row', async () => {
      const rows = await select<{ at: string }>(
        `SELECT toUnixTimestamp64Micro(timestamp) AS at FROM pills WHERE symbol = 'Y1970.T'`,
      );
      return rows[0];
    });
    expect(Number(at.at)).toBe(1_000_001);
  });

  test('kill -9 at several moments: each identity once, nothing missing', async () => {
    const symbol = 'CRASH.T';
    const rounds = isLongRun ? 5 : 1;
    const pills = Array.from({ length: rounds * 6_000 }, () => makePill({ symbol }));
    const random = seededRandom();
    process.stderr.write(`[analytics] kill moments: TEST_SEED=${testSeed}\n`);
    const metric = async (name: string) => {
      const { body } = await request(`${analytics.opsUrl}/metrics`);
      const match = new RegExp(`^${name} (\\d+)`, 'm').exec(await body.text());
      return Number(match?.[1] ?? 0);
    };
    const buffered = () =>
      waitFor(
        'rows in the buffer',
        async () => (await metric('pillole_analytics_buffered_rows')) > 0,
      );
    const moments: (() => Promise<unknown>)[] = [
      buffered,
      () =>
        waitFor('an insert acknowledged', async () => {
          return (await metric('pillole_analytics_rows_total')) > 0;
        }),
      // At a random moment between the first buffered row and shortly after the insert (after 1 s).
      () => buffered().then(() => sleep(random() * 1_500)),
      () => buffered().then(() => sleep(900 + random() * 300)),
    ];
    const kills = Array.from({ length: rounds }, () => moments).flat();
    for (const [round, moment] of kills.entries()) {
      // The moment may pass while a busy machine still waits for the acknowledgements.
      await Promise.all([moment(), writer.write(pills.slice(round * 1_500, (round + 1) * 1_500))]);
      await analytics.kill();
      analytics = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
      await analytics.ready();
    }
    await writer.write(pills.slice(0, 100)); // repeats
    await waitFor(
      'all rows to be stored',
      async () => (await countOf(symbol)).rows >= pills.length,
      240_000,
    );
    expect(await countOf(symbol)).toEqual({ rows: pills.length, ids: pills.length, late: 0 });
  }, 900_000);
});
