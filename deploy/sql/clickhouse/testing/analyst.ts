import { rmSync } from 'node:fs';
import { request } from 'undici';
import { inject } from 'vitest';
import { placedListings } from '../../../../generator/demo/listings.ts';
import { createMarket } from '../../../../generator/demo/market.ts';
import { databaseName } from '../../../../lib/clickhouse/clickhouse-client.ts';
import { nowMicros } from '../../../../lib/timing/clock.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import {
  createNamespace,
  type Namespace,
  newNamespaceName,
} from '../../../../testing/namespace.ts';
import { makePill, openPillWriter } from '../../../../testing/pills.ts';
import { startProcess } from '../../../../testing/process.ts';
import { waitFor } from '../../../../testing/wait.ts';
import {
  endTestServer,
  ownerUrl,
  startTestServer,
} from '../../../local/clickhouse-server/testing/test-server.ts';

/** The last minutes of a demo market with two symbols, before now. */
const MARKET = { seed: 7, pillsPerS: 0.4, durationS: 3_000, symbols: ['7203.T', '6758.T'] };

const WRITTEN_AT_ONCE = 2_000;

export type Row = Readonly<Record<string, unknown>>;

/** A namespace with pills of a demo market, and a client to read them. */
export interface Analyst {
  readonly namespace: Namespace;
  readonly database: string;
  readonly pills: readonly PillRecord[];
  /** Queries as the user analyst, like curl. @throws Error with ClickHouse's message */
  ask(sql: string): Promise<Row[]>;
  close(): Promise<unknown>;
}

/** @param pills of the last seven days, which are live; by default those of a small market */
export async function openAnalyst(pills: readonly PillRecord[] = marketPills()): Promise<Analyst> {
  const name = newNamespaceName();
  const database = databaseName(name);
  // A ClickHouse of its own: its analyst may read the database of this namespace.
  const { clickhouse, clickhouse_analyst: password } = inject('passwords');
  const passwords = { default: clickhouse, analyst: password };
  const server = await startTestServer(undefined, database, passwords);
  // Live pills have a track record.
  const live = { backfill_age_ms: 7 * 86_400_000 };
  const namespace = await createNamespace(live, name, ownerUrl(server, clickhouse));
  const ask = async (sql: string): Promise<Row[]> => {
    const url = new URL(namespace.engines.clickhouseUrl);
    const format = 'JSONEachRow';
    url.search = String(new URLSearchParams({ database, default_format: format }));
    url.username = '';
    url.password = '';
    const headers = { 'x-clickhouse-user': 'analyst', 'x-clickhouse-key': password };
    const { statusCode, body } = await request(url, { method: 'POST', headers, body: sql });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(text);
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Row);
  };
  const writer = await openPillWriter(namespace);
  for (let at = 0; at < pills.length; at += WRITTEN_AT_ONCE) {
    await writer.write(pills.slice(at, at + WRITTEN_AT_ONCE));
  }
  await writer.close();
  const sink = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  const fill = async () => {
    await sink.ready();
    await waitFor('the pills', async () => {
      const [row] = await ask('SELECT count() AS n FROM pills_once');
      return Number(row!.n) === pills.length;
    });
  };
  const close = async () => {
    await sink.stop();
    await endTestServer(server);
    rmSync(server.folder, { recursive: true, force: true });
  };
  await fill().catch(async (error) => {
    await close();
    throw error;
  });
  return { namespace, database, pills, ask, close };
}

function marketPills(): PillRecord[] {
  const { seed, pillsPerS, durationS, symbols } = MARKET;
  const listings = placedListings(() => 'ALWAYS').filter(({ symbol }) => symbols.includes(symbol));
  const market = createMarket(seed, pillsPerS, listings);
  const began = nowMicros() - durationS * 1e6;
  const pills: PillRecord[] = [];
  for (let next = market.next(); next.atS < durationS; next = market.next()) {
    const { atS, ...signal } = next;
    const timestamp = Math.round(began + atS * 1e6);
    pills.push(makePill({ ...signal, timestamp }));
  }
  return pills;
}

/** Columns that are null in at least one row. */
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
