import { afterAll, beforeAll, expect, test } from 'vitest';

import { silentLog } from '../../../lib/log/log.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';

import { formatCursor } from '../../../schemas/position.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openOwnSelect } from '../clickhouse/select.ts';
import { openLatestView } from '../pills/latest-view.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { openLogCache } from './log-cache.ts';
import { createPillSearch } from './pill-search.ts';
import { createPillStore } from './stored-pills.ts';
import { createWindowFiller } from './window-filler.ts';

const SYMBOLS = ['7203.T', '0700.HK', 'USD/JPY'];
/** The cache holds so few that most pills are in history only. */
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
  const life: Lifecycle = {
    log: silentLog,
    signal: stopping.signal,
    readyWhen: () => undefined,
    fail,
    onStop: (_, stop) => void stops.push(stop),
  };
  const { epoch } = settings;
  const view = await openLatestView({ client, schemas, settings, namespace: name }, life);
  const cache = await openLogCache({
    client,
    schemas,
    settings,
    namespace: name,
    log: silentLog,
    signal: stopping.signal,
    recentPillsMax: RECENT,
    nowMs: Date.now,
    onFatal: fail,
  });
  stops.push(cache.close);
  const { clickhouseUrl } = namespace.engines;
  const bounds = { name: 'verify', bounds: VERIFY_LIMITS, connectionsMax: 4 };
  const select = openOwnSelect({ clickhouseUrl, namespace: name }, life, bounds);
  const store = createPillStore(select, epoch);
  const fillWindow = createWindowFiller(cache, store);
  return {
    view,
    cache,
    store,
    fillWindow,
    search: createPillSearch({ cache, store, view, epoch }),
  };
}

/** Waits until history has everything that was written so far. */
const stored = () =>
  waitFor('history', async () => {
    const progress = await parts.store.coveredOffsets();
    const read = [...parts.cache.offsets()];
    return read.every(([partition, offset]) => (progress.get(partition) ?? -1) >= offset);
  });
const read = (symbol: string) =>
  waitFor(`the cache of ${symbol}`, () => {
    const [, offset] = cursors.get(`${symbol} r${spreads.get(symbol)!.length - 1}`)!.split('-');
    const partition = parts.cache.partitionOf(symbol);
    return (parts.cache.offsets().get(partition) ?? -1) >= Number(offset);
  });

beforeAll(async () => {
  namespace = await createNamespace({ repeat_window: 16 });
  writer = await openPillWriter(namespace);
  latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  analytics = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  await Promise.all([latest.ready(), analytics.ready()]);
  await write(0, ROUNDS);
  parts = await openParts();
  await parts.cache.caughtUp;
  await waitFor('the view', () => SYMBOLS.every((symbol) => parts.view.get(symbol) !== undefined));
  await stored();
});

afterAll(async () => {
  analytics?.child.kill('SIGCONT');
  for (const stop of stops.reverse()) await stop();
  await Promise.all([latest?.stop(), analytics?.stop()]);
  await writer?.close();
});

test.each(SYMBOLS)(
  '%s: an old pill is found in history, a new one in the cache',
  async (symbol) => {
    const { search, cache } = parts;
    for (const [round, repeats] of [
      [0, undefined],
      [50, undefined],
      [ROUNDS - 1, 0],
    ] as const) {
      const id = `r${round}`;
      expect(cache.recent.find(symbol, id) === undefined).toBe(repeats === undefined);
      const { found, fault } = await search.find(symbol, id);
      expect(fault).toBeUndefined();
      expect(found.map((one) => [one.pill.id, one.repeats])).toEqual([[id, repeats]]);
      const { partition, offset } = found[0]!.pill;
      expect(formatCursor(partition, offset)).toBe(cursors.get(`${symbol} ${id}`));
      expect(found[0]!.pill).toMatchObject({
        symbol,
        gross_spread_percent: round / 1000,
        market_state: 'open',
        backfill: false,
      });
    }
  },
);

test('an id alone: all symbols, from history and from the cache', async () => {
  for (const id of ['r3', `r${ROUNDS - 1}`]) {
    const { found, hasMore, fault } = await parts.search.findAll(id);
    expect(found.map(({ pill }) => pill.symbol)).toEqual([...SYMBOLS].sort());
    expect([hasMore, fault]).toEqual([false, undefined]);
  }
});

test('an id that was never sent: missing, with the start of the search', async () => {
  const { found, fault, searchedFrom } = await parts.search.find('7203.T', 'never');
  expect([found, fault]).toEqual([[], undefined]);
  expect(searchedFrom).toBe(await parts.store.oldest());
});

test('a window is filled from history with the symbol’s pills, then grows with new ones', async () => {
  const symbol = '7203.T';
  const window = parts.cache.windowOf(symbol);
  expect(await parts.fillWindow(symbol)).toBe(true);
  const sorted = () => [...window.spreads()].sort((a, b) => a - b);
  expect(sorted()).toEqual(spreads.get(symbol));
  await write(ROUNDS, 5);
  await read(symbol);
  expect(sorted()).toEqual(spreads.get(symbol));
});

test('the sink is frozen: pills in neither place are unknown, and found again afterwards', async () => {
  const symbol = '0700.HK';
  await stored();
  analytics.child.kill('SIGSTOP');
  const from = spreads.get(symbol)!.length;
  await write(from, 2 * RECENT);
  await read(symbol);
  const hidden = await parts.search.find(symbol, `r${from}`);
  expect(hidden.found).toEqual([]);
  expect(hidden.fault?.code).toBe('search_incomplete');
  const all = await parts.search.findAll(`r${from}`);
  expect(all.fault?.detail).toMatch(/^\d-\d+ to \d-\d+ were not searched$/);
  // A process that starts now cannot fill a window across the missing pills either.
  const late = await openParts();
  await late.cache.caughtUp;
  await waitFor('the view', () => late.view.get(symbol) !== undefined);
  expect(await late.fillWindow(symbol)).toBe(false);
  expect(late.cache.windowOf(symbol).isWhole).toBe(false);
  analytics.child.kill('SIGCONT');
  await stored();
  expect((await parts.search.find(symbol, `r${from}`)).found).toHaveLength(1);
  await waitFor('the window', () => late.fillWindow(symbol));
  expect(late.cache.windowOf(symbol).count).toBe(spreads.get(symbol)!.length);
});
