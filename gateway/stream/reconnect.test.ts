import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { partitionOf } from '../../schemas/partition.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { startStream } from './testing/start-stream.ts';
import { closeClients, connect, type GotPill, pillsOf } from './testing/stream-client.ts';

/** Two symbols in each of three partitions. */
const SYMBOLS = pickSymbols(3, 2);

let namespace: Namespace;
let writer: PillWriter;
let db: Database;
let key: string;
const processes: TestProcess[] = [];

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'institutional' }));
});

afterEach(async () => {
  closeClients();
  await Promise.all(processes.splice(0).map((stream) => stream.stop()));
});

afterAll(async () => {
  await writer?.close();
  await db?.destroy();
});

async function start() {
  const started = await startStream(namespace.env);
  processes.push(started.stream);
  return started;
}

function pickSymbols(partitions: number, each: number): string[] {
  const picked = Array.from({ length: partitions }, (): string[] => []);
  for (let n = 1; picked.some((own) => own.length < each); n += 1) {
    const own = picked[partitionOf(`R${n}.T`, partitions)]!;
    if (own.length < each) own.push(`R${n}.T`);
  }
  return picked.flat();
}

const round = () => writer.write(SYMBOLS.map((symbol) => makePill({ symbol })));

/** Connects, subscribes with these fields, and waits for `live`. */
async function come(url: string, fields: Record<string, unknown> = {}) {
  const client = await connect(url, { key });
  client.send({ op: 'subscribe', id: '1', symbols: SYMBOLS, snapshot: false, ...fields });
  const subscribed = await client.until('subscribed');
  const live = await client.until('live');
  return { client, subscribed, live };
}

/** Checks the guarantees for the pills of a client over all its connections. */
function expectWhole(pills: readonly GotPill[], from: number, rounds: number): void {
  for (const symbol of SYMBOLS) {
    const own = pills.filter((pill) => pill.symbol === symbol);
    const offsets = own.map(({ cursor }) => Number(cursor.split('-')[1]));
    expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => a - b));
    expect(own, `${symbol} from round ${from}`).toHaveLength(rounds);
  }
}

describe('over a restart of the process, with three partitions', () => {
  test('an interrupted client misses nothing and gets no duplicates', async () => {
    for (let n = 0; n < 20; n += 1) await round();
    const first = await start();
    const { client } = await come(first.url);
    for (let n = 0; n < 30; n += 1) await round();
    await waitFor('some pills', () => client.pills().length >= 60);
    first.stream.kill();
    await client.closed;
    // The client's position: the last cursor of each partition, on top of its start.
    const before = client.pills();
    const began = client.frames.find((frame) => frame.type === 'live')!;
    const offsets = new Map(
      (began as { position: string }).position
        .split(':')[1]!
        .split(',')
        .map((cursor) => cursor.split('-').map(Number) as [number, number]),
    );
    for (const { cursor } of before) {
      const [partition, offset] = cursor.split('-').map(Number) as [number, number];
      offsets.set(partition, Math.max(offsets.get(partition) ?? -1, offset));
    }
    const resume = `${namespace.settings.epoch}:${[...offsets].map((o) => o.join('-')).join(',')}`;
    for (let n = 0; n < 10; n += 1) await round();

    const second = await start();
    // Many clients resume at once: the log is read once for all of them.
    const back = await Promise.all(Array.from({ length: 20 }, () => come(second.url, { resume })));
    await round();
    for (const { client: again, subscribed, live } of back) {
      expect(subscribed).toMatchObject({ recovered: true, reason: null });
      expect(live.replayed).toBe(subscribed.replaying);
      const whole = () => [...before, ...again.pills()];
      await waitFor('all pills to arrive', () => whole().length >= SYMBOLS.length * 41);
      expectWhole(whole(), 20, 41);
      const replayed = again.pills().filter((pill) => pill.replayed);
      expect(replayed).toHaveLength(subscribed.replaying);
    }
  });

  test('a resume by time gets the pills received since; backfill only on request', async () => {
    await round();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const since = new Date().toISOString();
    await round();
    const old = new Date(Date.now() - 3_600_000);
    await writer.write([makePill({ symbol: SYMBOLS[0]!, timestamp: old.getTime() * 1000 })]);
    const { url } = await start();
    const live = await come(url, { resume: { since } });
    expect(live.subscribed).toMatchObject({ recovered: true, replaying: SYMBOLS.length });
    const first = await come(url, { resume: { since: '1970-01-01T00:00:06Z' } });
    for (const beginning of ['1970-01-01T00:00:00Z', '1970-01-01T00:00:04.999Z']) {
      const { subscribed } = await come(url, { resume: { since: beginning } });
      expect(subscribed).toMatchObject({ recovered: true, replaying: first.subscribed.replaying });
    }
    const all = await come(url, { resume: { since }, backfill: true });
    expect(all.subscribed.replaying).toBe(SYMBOLS.length + 1);
    expect(all.client.pills().filter((pill) => pill.backfill)).toHaveLength(1);
    const later = await come(url, {
      resume: { since: new Date(Date.now() + 60_000).toISOString() },
    });
    expect(later.subscribed).toMatchObject({ recovered: true, replaying: 0 });
  });

  test('a replay treats a repeat and a late pill as they were treated when they arrived', async () => {
    const { url } = await start();
    const { subscribed, client } = await come(url);
    const resume = subscribed.position;
    const symbol = SYMBOLS[1]!;
    const now = Date.now() * 1000;
    await writer.write([
      makePill({ symbol, id: 'twice' }),
      makePill({ symbol, timestamp: now - 20_000_000, id: 'late' }),
      makePill({ symbol, id: 'twice' }),
    ]);
    await writer.write([makePill({ symbol, id: 'last' })]);
    await waitFor('the last', () => client.pills().some(({ id }) => id === 'last'));
    const { url: other } = await start();
    for (const instance of [url, other]) {
      const again = await come(instance, { resume });
      const replayed = again.client.pills().map(({ id, late }) => [id, late ?? false]);
      expect(replayed).toEqual([
        ['twice', false],
        ['late', true],
        ['last', false],
      ]);
    }
    const newest = await come(other, { resume, mode: 'latest' });
    expect(newest.client.pills().map(({ id }) => id)).toEqual(['twice', 'last']);
  });

  test('pills that cannot be replayed are reported by a gap and a fresh snapshot', async () => {
    const { url } = await start();
    const { epoch } = namespace.settings;
    const unknown = await come(url, { resume: 'other:0-1' });
    expect(unknown.subscribed).toMatchObject({ recovered: false, reason: 'epoch_unknown' });
    expect((await unknown.client.until('snapshot')).pills).toHaveLength(SYMBOLS.length);
    const ahead = await come(url, { resume: `${epoch}:0-999999` });
    expect(ahead.subscribed).toMatchObject({ recovered: false, reason: 'position_ahead' });
    expect(ahead.client.frames.flatMap(pillsOf)).toEqual([]);
  });
});
