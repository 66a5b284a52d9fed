import { request } from 'undici';
import { databaseName } from '../../../../lib/clickhouse.ts';
import { nowMicros } from '../../../../lib/clock.ts';
import { createNamespace, type Namespace } from '../../../../lib/testing/namespace.ts';
import { makePill, openPillWriter } from '../../../../lib/testing/pills.ts';
import { startProcess } from '../../../../lib/testing/process.ts';
import { waitFor } from '../../../../lib/testing/wait.ts';

/** Pills of each of the two symbols. */
export const PILLS_OF_SYMBOL = 600;

export type Row = Readonly<Record<string, unknown>>;

/** Tables of a test's own with pills of 7203.T and 6758.T, one every 5 s up to now, and their reader. */
export interface Analyst {
  readonly namespace: Namespace;
  readonly database: string;
  /** Asks as the user analyst, as curl does. @throws Error with what ClickHouse says. */
  ask(sql: string): Promise<Row[]>;
  close(): Promise<unknown>;
}

export async function openAnalyst(): Promise<Analyst> {
  // Pills of the last hour are live, so that a track record has something to tell.
  const namespace = await createNamespace({ backfill_age_ms: 86_400_000 });
  const database = databaseName(namespace.name);
  const ask = async (sql: string): Promise<Row[]> => {
    const url = new URL(namespace.engines.clickhouseUrl);
    const format = 'JSONEachRow';
    url.search = String(new URLSearchParams({ user: 'analyst', database, default_format: format }));
    const { statusCode, body } = await request(url, { method: 'POST', body: sql });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(text);
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Row);
  };
  const pills = [...pillsOf('7203.T', 1), ...pillsOf('6758.T', 2)];
  const writer = await openPillWriter(namespace);
  await writer.write(pills);
  await writer.close();
  const sink = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  const fill = async () => {
    await sink.ready();
    await waitFor('the pills', async () => {
      const [row] = await ask('SELECT count() AS n FROM pills_once');
      return Number(row!.n) === pills.length;
    });
  };
  await fill().catch(async (error) => {
    await sink.stop();
    throw error;
  });
  return { namespace, database, ask, close: sink.stop };
}

function pillsOf(symbol: string, scale: number) {
  const now = nowMicros();
  return Array.from({ length: PILLS_OF_SYMBOL }, (_, at) =>
    makePill({
      symbol,
      timestamp: now - (PILLS_OF_SYMBOL - at) * 5_000_000,
      gross_spread_percent: scale * (0.1 + ((at * 37) % 101) / 1_000),
      confidence: (at % 100) / 100,
    }),
  );
}

/** Columns that are null in some row: a figure of nothing is none. */
export function nullColumns(rows: readonly Row[]): string[] {
  const isNull = ([, value]: [string, unknown]) => value === null;
  return [
    ...new Set(
      rows.flatMap((row) =>
        Object.entries(row)
          .filter(isNull)
          .map(([of]) => of),
      ),
    ),
  ];
}
