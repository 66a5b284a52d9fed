import { afterAll, beforeAll, expect, test } from 'vitest';
import { databaseName, openClickHouse } from '../../../lib/clickhouse.ts';
import { nowMicros } from '../../../lib/clock.ts';
import { silentLog } from '../../../lib/log.ts';
import type { Life } from '../../../lib/run.ts';
import { createMarkets } from '../../../lib/signal/markets.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { formatCursor } from '../../../schemas/position.ts';
import { openLatestView } from '../view.ts';
import { createFinder } from './finder.ts';
import { createHearing } from './hearing.ts';
import { openLogMemory } from './log-memory.ts';
import { openStore } from './store.ts';
import { createWeigher } from './weigher.ts';

const SYMBOLS = ['7203.T', '0700.HK', 'USD/JPY'];
/** Memory holds so few that most is in history alone. */
const RECENT = 30;
const ROUNDS = 100;

let namespace: Namespace;
let writer: PillWriter;
let latest: TestProcess;
let analytics: TestProcess;
let parts: Awaited<ReturnType<typeof openParts>>;
const stops: (() => Promise<void> | void)[] = [];
const cursors = new Map<string, string>();
const spreads = new Map<string, number[]>(SYMBOLS.map((symbol) => [symbol, []]));

async function write(from: number, rounds: number) {
  for (let round = from; round < from + rounds; round += 1) {
    const pills = SYMBOLS.map((symbol) =>
      makePill({ symbol, id: `r${round}`, gross_spread_percent: round / 1000 }),
    );
    const acks = await writer.write(pills);
    for (const [at, { symbol, id, gross_spread_percent }] of pills.entries()) {
      cursors.set(`${symbol} ${id}`, formatCursor(acks[at]!.partition, acks[at]!.offset));
      spreads.get(symbol)!.push(gross_spread_percent);
    }
  }
}

async function openParts() {
  const { client, schemas, settings, name } = namespace;
  const stopping = new AbortController();
  const fail = (error: Error) => {
    throw error;
  };
  const life: Life = {
    ...{ log: silentLog, signal: stopping.signal, readyWhen: () => undefined, fail },
    onStop: (_, stop) => void stops.push(stop),
  };
  const { epoch } = settings;
  const view = await openLatestView({ client, schemas, settings, namespace: name }, life);
  const memory = await openLogMemory({
    ...{ client, schemas, settings, namespace: name, log: silentLog, signal: stopping.signal },
    ...{ recentPillsMax: RECENT, nowMs: Date.now, onFatal: fail },
  });
  stops.push(memory.close);
  const { clickhouseUrl: url } = namespace.engines;
  const clickhouse = openClickHouse({ url, database: databaseName(name) });
  stops.push(() => clickhouse.close());
  const store = openStore({ clickhouse, epoch, log: silentLog });
  const hearing = createHearing(
    { isCaughtUp: () => true, isConnected: () => true, processor: () => 'up' },
    Date.now,
  );
  const markets = createMarkets();
  const weigher = createWeigher({ view, memory, store, markets, hearing, nowMicros });
  return { view, memory, store, weigher, finder: createFinder({ memory, store, view, epoch }) };
}

/** History has all that was written so far. */
const stored = () =>
  waitFor('history', async () => {
    const progress = await parts.store.progress();
    const read = [...parts.memory.offsets()];
    return read.every(([partition, offset]) => (progress.get(partition) ?? -1) >= offset);
  });
const read = (symbol: string) =>
  waitFor(`memory of ${symbol}`, () => {
    const [, offset] = cursors.get(`${symbol} r${spreads.get(symbol)!.length - 1}`)!.split('-');
    const partition = parts.memory.partitionOf(symbol);
    return (parts.memory.offsets().get(partition) ?? -1) >= Number(offset);
  });

beforeAll(async () => {
  namespace = await createNamespace({ repeat_window: 16 });
  writer = await openPillWriter(namespace);
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  analytics = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  await Promise.all([latest.ready(), analytics.ready()]);
  await write(0, ROUNDS);
  parts = await openParts();
  await parts.memory.caughtUp;
  await waitFor('the view', () => SYMBOLS.every((symbol) => parts.view.get(symbol) !== undefined));
  await stored();
});

afterAll(async () => {
  analytics?.child.kill('SIGCONT');
  for (const stop of stops.reverse()) await stop();
  await Promise.all([latest?.stop(), analytics?.stop()]);
  await writer?.close();
});

test.each(SYMBOLS)('%s: an old pill is found in history, a new one in memory', async (symbol) => {
  const { finder, memory } = parts;
  for (const [round, repeats] of [
    [0, undefined],
    [50, undefined],
    [ROUNDS - 1, 0],
  ] as const) {
    const id = `r${round}`;
    expect(memory.recent.find(symbol, id) === undefined).toBe(repeats === undefined);
    const { found, fault } = await finder.find(symbol, id);
    expect(fault).toBeUndefined();
    expect(found.map(({ pill, repeats: told }) => [pill.id, told])).toEqual([[id, repeats]]);
    const { partition, offset } = found[0]!.pill;
    expect(formatCursor(partition, offset)).toBe(cursors.get(`${symbol} ${id}`));
    expect(found[0]!.pill).toMatchObject({
      ...{ symbol, gross_spread_percent: round / 1000, market_state: 'open', backfill: false },
    });
  }
});

test('an id alone: all symbols, from history and from memory', async () => {
  for (const id of ['r3', `r${ROUNDS - 1}`]) {
    const { found, hasMore, fault } = await parts.finder.findAll(id);
    expect(found.map(({ pill }) => pill.symbol)).toEqual([...SYMBOLS].sort());
    expect([hasMore, fault]).toEqual([false, undefined]);
  }
});

test('one that was never sent is missing from all, and says since when was searched', async () => {
  const { found, fault, searchedFrom } = await parts.finder.find('7203.T', 'never');
  expect([found, fault]).toEqual([[], undefined]);
  expect(searchedFrom).toBe(await parts.store.oldest());
});

test('a window is filled from history: exactly the symbol’s pills, then those that come', async () => {
  const symbol = '7203.T';
  const window = parts.memory.windowOf(symbol);
  expect(await parts.weigher.warm(symbol)).toBe(true);
  const sorted = () => [...window.spreads()].sort((a, b) => a - b);
  expect(sorted()).toEqual(spreads.get(symbol));
  await write(ROUNDS, 5);
  await read(symbol);
  expect(sorted()).toEqual(spreads.get(symbol));
});

test('the sink frozen: what is in neither is unknown, and is found again afterwards', async () => {
  const symbol = '0700.HK';
  await stored();
  analytics.child.kill('SIGSTOP');
  const from = spreads.get(symbol)!.length;
  await write(from, 2 * RECENT);
  await read(symbol);
  const hidden = await parts.finder.find(symbol, `r${from}`);
  expect(hidden.found).toEqual([]);
  expect(hidden.fault?.code).toBe('search_incomplete');
  const all = await parts.finder.findAll(`r${from}`);
  expect(all.fault?.detail).toMatch(/^\d-\d+ to \d-\d+ were not searched$/);
  // Nor can a window be filled over the hole, by a process that starts now.
  const late = await openParts();
  await late.memory.caughtUp;
  await waitFor('the view', () => late.view.get(symbol) !== undefined);
  expect(await late.weigher.warm(symbol)).toBe(false);
  expect(late.memory.windowOf(symbol).isWhole).toBe(false);
  analytics.child.kill('SIGCONT');
  await stored();
  expect((await parts.finder.find(symbol, `r${from}`)).found).toHaveLength(1);
  await waitFor('the window', () => late.weigher.warm(symbol));
  expect(late.memory.windowOf(symbol).count).toBe(spreads.get(symbol)!.length);
});
