import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openProducer } from '../../lib/kafka/producer.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../lib/testing/pills.ts';
import { startProcess, type TestProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { createEncoder, type LatestPill } from '../../schemas/avro.ts';
import { partitionOf } from '../../schemas/partition.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { topicName } from '../../schemas/topics.ts';
import {
  type Client,
  type ConnectOptions,
  closeClients,
  connect as connectWith,
  framesOf,
  pillsOf,
} from './testing/client.ts';

/** One symbol in each of three partitions: murmur2 mod 3 is 0, 1 and 2. */
const SYMBOLS = pickSymbols(3);
const SECOND = 1_000_000;

let namespace: Namespace;
let writer: PillWriter;
let stream: TestProcess;
let url: string;
let db: Database;
let key: string;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  db = openTestDatabase(namespace);
  ({ key } = await createTestAccount(db, namespace, { tier: 'institutional' }));
  ({ stream, url } = await start());
});

afterEach(closeClients);

afterAll(async () => {
  await stream?.stop();
  await writer?.close();
  await db?.destroy();
});

const connect = (to: string, options: ConnectOptions = {}) => connectWith(to, { key, ...options });

async function start(env: Readonly<Record<string, string>> = namespace.env) {
  const started = await startProcess('gateway/stream/main.js', [], { ...env, STREAM_PORT: '0' });
  await started.ready();
  const [, address] = /"url":"(ws:[^"]+)"/.exec(started.output())!;
  return { stream: started, url: address! };
}

function pickSymbols(partitions: number): string[] {
  const picked: string[] = [];
  for (let n = 1; picked.filter(Boolean).length < partitions; n += 1) {
    picked[partitionOf(`S${n}.T`, partitions)] ??= `S${n}.T`;
  }
  return picked;
}

const now = () => Date.now() * 1000;
const live = (symbol: string, fields: Partial<PillRecord> = {}) => makePill({ symbol, ...fields });

/** Subscribes and waits for `live`. */
async function subscribe(client: Client, fields: Record<string, unknown>) {
  client.send({ op: 'subscribe', ...fields });
  return client.until('live');
}

describe('a subscription', () => {
  test('snapshot, live, then pills: prev is never broken, over three partitions', async () => {
    await writer.write(SYMBOLS.map((symbol) => live(symbol)));
    const client = await connect(url);
    expect(await client.until('welcome')).toMatchObject({
      version: '1.0',
      epoch: namespace.settings.epoch,
      limits: { queue_bytes: 1_048_576, frame_in_bytes: 4_096 },
    });
    // Pills go on being written while it subscribes.
    let writing = true;
    const written = (async () => {
      while (writing) await writer.write(SYMBOLS.map((symbol) => live(symbol)));
    })();
    await waitFor('the first pills', async () => {
      client.send({ op: 'subscribe', id: 's', symbols: SYMBOLS });
      const { never_seen } = await client.until('subscribed');
      await client.until('live');
      return never_seen.length === 0;
    });
    await waitFor('500 pills', () => client.pills().length > 500);
    writing = false;
    await written;
    const last = new Map<string, string | null>();
    const seen = new Set<string>();
    for (const frame of client.frames) {
      if (frame.type === 'subscribed') last.clear();
      if (frame.type === 'snapshot') {
        for (const pill of frame.pills) last.set(pill.symbol, pill.last_cursor);
      }
      for (const pill of pillsOf(frame)) {
        expect(pill.prev).toBe(last.get(pill.symbol) ?? null);
        expect(seen.has(pill.cursor)).toBe(false);
        seen.add(pill.cursor);
        last.set(pill.symbol, pill.cursor);
        expect(pill.late).toBeUndefined();
      }
    }
  });

  test('all of * comes once, also where a symbol is named; TEST: symbols only when named', async () => {
    const everything = await connect(url);
    await subscribe(everything, { symbols: ['*'], snapshot: false });
    const named = await connect(url);
    await subscribe(named, { symbols: ['*'], snapshot: false });
    await subscribe(named, { symbols: ['TEST:A', SYMBOLS[0]!], snapshot: false });
    const [a, t, b] = [live(SYMBOLS[0]!), live('TEST:A'), live(SYMBOLS[1]!)];
    await writer.write([a, t]);
    await writer.write([b]);
    await waitFor('the last pill', () => everything.pills().length > 1 && named.pills().length > 2);
    expect(everything.pills().map(({ id }) => id)).toEqual([a.id, b.id]);
    expect(new Set(named.pills().map(({ id }) => id))).toEqual(new Set([a.id, b.id, t.id]));
    expect(named.pills()).toHaveLength(3);
  });

  test('backfill comes to those who asked, unchained; others get none of it', async () => {
    const asked = await connect(url);
    await subscribe(asked, { symbols: ['BACK.T'], backfill: true });
    const other = await connect(url);
    await subscribe(other, { symbols: ['BACK.T'] });
    const old = live('BACK.T', { timestamp: now() - 3_600 * SECOND });
    const pills = [live('BACK.T'), old, live('BACK.T')];
    for (const pill of pills) await writer.write([pill]);
    await waitFor('three pills', () => asked.pills().length === 3);
    expect(asked.pills().map(({ id }) => id)).toEqual(pills.map(({ id }) => id));
    expect(asked.pills().map(({ prev }) => prev)).toEqual([null, null, null]);
    expect(asked.pills()[1]).toMatchObject({ late: true, backfill: true });
    await waitFor('two pills', () => other.pills().length === 2);
    expect(other.pills()[1]!.prev).toBe(other.pills()[0]!.cursor);
  });

  test('repeats and poison records are not sent, and stop nothing', async () => {
    const client = await connect(url);
    await subscribe(client, { symbols: ['POISON.T'] });
    const pill = live('POISON.T');
    await writer.write([pill]);
    await writer.write([{ ...pill, confidence: 1 }]);
    const right = partitionOf('POISON.T', 3);
    await writer.writeRaw(right, 'POISON.T', Buffer.from('garbage'));
    await writer.writeRaw((right + 1) % 3, 'POISON.T', Buffer.from([0, 0, 0, 0, 99, 1]));
    const next = live('POISON.T');
    await writer.write([next]);
    await waitFor('the next pill', () => client.pills().length === 2);
    expect(client.pills().map(({ id }) => id)).toEqual([pill.id, next.id]);
    expect(client.pills()[1]!.prev).toBe(client.pills()[0]!.cursor);
    // The position moves past what has no effect.
    const heartbeat = await waitFor('a heartbeat after it', async () => {
      const latest = await client.until('heartbeat');
      return latest.sent === 2 && latest;
    });
    expect(heartbeat.position).toContain(client.pills()[1]!.cursor);
    expect(heartbeat).toMatchObject({ sent: 2, skipped: 0, generator: { state: 'alive' } });
  });

  test('a filter lets through what it names and counts the rest', async () => {
    const client = await connect(url);
    const filter = { min_confidence: 0.5, max_spread: 1, states: ['open'] };
    await subscribe(client, { symbols: ['FILTER.T'], filter });
    const fields = { confidence: 0.9, gross_spread_percent: 0.5, market_state: 'open' };
    await writer.write([
      live('FILTER.T', { ...fields, confidence: 0.4 }),
      live('FILTER.T', { ...fields, gross_spread_percent: 2 }),
      live('FILTER.T', { ...fields, market_state: 'closed' }),
      live('FILTER.T', { ...fields, id: 'passes' }),
    ]);
    await waitFor('the pill', () => client.pills().length === 1);
    expect(client.pills()[0]!.id).toBe('passes');
    const heartbeat = await waitFor('a heartbeat after it', async () => {
      const next = await client.until('heartbeat');
      return next.sent === 1 && next;
    });
    expect(heartbeat.filtered).toBe(3);
  });

  test('an unsubscribed symbol is gone', async () => {
    await writer.write([live('GONE.T')]);
    const client = await connect(url);
    await subscribe(client, { symbols: ['GONE.T'] });
    client.send({ op: 'unsubscribe', id: 'u', symbols: ['GONE.T', 'OTHER.T'] });
    expect(await client.until('unsubscribed')).toMatchObject({
      symbols: ['GONE.T'],
      remaining: 0,
    });
  });
});

describe('bad frames', () => {
  test.each([
    ['not json', 'json_malformed'],
    ['[]', 'json_malformed'],
    ['{"op":"ping","op":"ping"}', 'json_malformed'],
    ['{"id":"1"}', 'missing_field'],
    ['{"op":"subscrib"}', 'unknown_op'],
    ['{"op":"toString"}', 'unknown_op'],
    ['{"op":"ping","t":"1"}', 'wrong_type'],
    ['{"op":"ping","x":1}', 'unknown_field'],
    ['{"op":"subscribe"}', 'missing_field'],
    ['{"op":"subscribe","symbols":[]}', 'out_of_range'],
    ['{"op":"subscribe","symbols":["*","A"]}', 'out_of_range'],
    ['{"op":"subscribe","symbols":["A"],"resume":"x"}', 'position_malformed'],
    ['{"op":"auth","key":"pil_live_x"}', 'auth_not_needed'],
    [Buffer.from('{"op":"ping"}'), 'text_only'],
  ])('%s is answered with %s, and the connection goes on', async (frame, code) => {
    const client = await connect(url);
    client.sendRaw(frame);
    expect(await client.until('error')).toMatchObject({ code, fatal: false });
    client.send({ op: 'ping', id: 'p', t: 7 });
    expect(await client.until('pong')).toMatchObject({ id: 'p', t: 7 });
  });

  test('symbols are rejected one by one', async () => {
    const client = await connect(url);
    client.send({ op: 'subscribe', id: '1', symbols: ['0700 HK', 'NEVER.T', 'NEVER.T', ''] });
    expect(await client.until('subscribed')).toMatchObject({
      id: '1',
      accepted: ['NEVER.T'],
      rejected: [
        { symbol: '0700 HK', code: 'symbol_malformed' },
        { symbol: '', code: 'symbol_malformed' },
      ],
      never_seen: ['NEVER.T'],
      recovered: null,
    });
  });

  test('too many frames a second end in 4006', async () => {
    const fast = await connect(url);
    for (let n = 0; n < 25; n += 1) fast.send({ op: 'ping' });
    expect(await fast.until('error')).toMatchObject({ code: 'too_fast', fatal: true, close: 4006 });
    expect(await fast.closed).toMatchObject({ code: 4006, reason: 'too_fast' });
  });

  test('bad UTF-8 and frames over 4 KiB end the connection, and no other', async () => {
    const other = await connect(url);
    const wrong = await connect(url);
    wrong.sendText(Buffer.from([0x22, 0xff, 0x22]));
    expect([1006, 1007]).toContain((await wrong.closed).code);
    const long = await connect(url);
    long.sendText(Buffer.alloc(4_097, 0x20));
    expect((await long.closed).code).toBe(4506);
    other.send({ op: 'ping' });
    await other.until('pong');
  });

  test('a foreign page is told so and closed with 4507; a page of this machine is not', async () => {
    const foreign = await connect(url, { origin: 'https://example.com' });
    expect(await foreign.until('error')).toMatchObject({ code: 'origin_refused', close: 4507 });
    expect((await foreign.closed).code).toBe(4507);
    const local = await connect(url, { origin: 'http://localhost:3000' });
    await local.until('welcome');
  });

  test('other paths are 404, the path without a handshake is 426', async () => {
    const http = url.replace('ws:', 'http:');
    const elsewhere = await fetch(`${http}/nothing`);
    expect(elsewhere.status).toBe(404);
    expect(elsewhere.headers.get('content-type')).toBe('application/problem+json');
    expect(await elsewhere.json()).toMatchObject({ code: 'not_found' });
    expect((await fetch(http)).status).toBe(426);
    expect((await fetch(new URL('/health', http))).status).toBe(200);
    expect((await fetch(new URL('/ready', http))).status).toBe(200);
    expect((await fetch(http, { method: 'POST', body: 'x'.repeat(100_000) })).status).toBe(426);
  });
});

describe('a reader that never reads', () => {
  test('is closed with 4001 in all mode, while another gets everything', async () => {
    const good = await connect(url);
    await subscribe(good, { symbols: ['SLOW.T'] });
    const deaf = await connect(url);
    await subscribe(deaf, { symbols: ['SLOW.T'] });
    const latest = await connect(url);
    await subscribe(latest, { symbols: ['SLOW.T'], mode: 'latest' });
    deaf.pause();
    latest.pause();
    const metric = async () => {
      const text = await (await fetch(`${stream.opsUrl}/metrics`)).text();
      return /closed_total\{reason="slow_consumer"\} ([1-9]\d*)/.test(text);
    };
    // The kernel takes some MB before our own queue of 1 MiB begins to fill.
    let count = 0;
    const id = 'x'.repeat(120);
    await waitFor('the deaf one to be closed', async () => {
      const pills = Array.from({ length: 2_000 }, () => live('SLOW.T', { id: `${id}${count++}` }));
      await writer.write(pills);
      return metric();
    });
    await waitFor('all pills at the good one', () => good.pills().length === count);
    let last = '';
    for (const pill of good.pills()) {
      if (last !== '') expect(pill.prev).toBe(last);
      last = pill.cursor;
    }
    deaf.resume();
    latest.resume();
    const error = await deaf.until('error');
    expect(error).toMatchObject({ code: 'slow_consumer', fatal: true, close: 4001 });
    expect((await deaf.closed).code).toBe(4001);
    // All up to the position it was told has come, and nothing after it.
    expect(error.position).toContain(deaf.pills().at(-1)!.cursor);
    expect(deaf.pills().length).toBeLessThan(count);
    // The latest reader has the newest, and what it missed is counted.
    await waitFor('the newest', () => latest.pills().at(-1)?.cursor === last);
    const skipped = latest.pills().reduce((sum, pill) => sum + (pill.skipped ?? 0), 0);
    expect(skipped + latest.pills().length).toBe(count);
    const heartbeat = await waitFor('a heartbeat after it', async () => {
      const next = await latest.until('heartbeat');
      return next.sent === latest.pills().length && next;
    });
    expect(heartbeat.skipped).toBe(skipped);
  }, 90_000);
});

describe('the process', () => {
  test('goes on with prev after a restart, from what the latest topic says', async () => {
    const mine = await createNamespace();
    const own = await openPillWriter(mine);
    const ownDb = openTestDatabase(mine);
    const account = await createTestAccount(ownDb, mine, { tier: 'institutional' });
    await ownDb.destroy();
    const before = [live('RESTART.T'), live('RESTART.T')];
    const first = await own.write(before);
    const row: LatestPill = {
      epoch: mine.settings.epoch,
      offset: first[1]!.offset,
      last_offset: first[1]!.offset,
      processed_offset: first[1]!.offset,
      prev_offset: first[0]!.offset,
      id: 'known',
      timestamp: now() - SECOND,
      symbol: 'RESTART.T',
      gross_spread_percent: 1,
      market_state: 'open',
      confidence: 1,
      received_at: now() - SECOND,
      source: null,
      backfill: false,
    };
    const encode = createEncoder('latest-pill', await mine.schemas.register('latest'));
    const { partition } = first[0]!;
    const producer = await openProducer(mine.client);
    await producer.produce([
      { topic: topicName(mine.name, 'latest'), partition, key: 'RESTART.T', value: encode(row) },
    ]);
    await producer.close();
    const started = await start(mine.env);
    try {
      const client = await connect(started.url, { key: account.key });
      await subscribe(client, { symbols: ['RESTART.T'] });
      // The row stands for what was read before: the log is not judged again.
      const [snapshot] = framesOf(client.frames, 'snapshot');
      expect(snapshot!.pills).toMatchObject([{ id: 'known', last_cursor: `${partition}-1` }]);
      // A repeat of what came before the start is known, from the repeat window alone.
      const next = live('RESTART.T');
      await own.write([before[0]!, next]);
      await waitFor('the pill', () => client.pills().length > 0);
      expect(client.pills()[0]!.id).toBe(next.id);
      expect(client.pills()[0]!.prev).toBe(`${partition}-1`);
    } finally {
      await started.stream.stop();
      await own.close();
    }
  });

  test('says goodbye at SIGTERM: drain, a last position, 4000, exit 0', async () => {
    const started = await start();
    const clients = await Promise.all(Array.from({ length: 5 }, () => connect(started.url)));
    for (const client of clients) await subscribe(client, { symbols: ['*'], snapshot: false });
    const stopped = started.stream.stop();
    for (const client of clients) {
      const drain = await client.until('drain');
      expect(drain.grace_ms).toBeLessThan(4_000);
      expect(drain.reconnect_after_ms).toBeGreaterThanOrEqual(0);
      expect(drain.position).toMatch(/^[a-z0-9]+:\d/);
      expect(await client.closed).toMatchObject({ code: 4000, reason: 'drain' });
      expect(client.frames.at(-1)).toMatchObject({ type: 'heartbeat' });
    }
    await expect(fetch(new URL('/health', started.url.replace('ws', 'http')))).rejects.toThrow();
    expect(await stopped).toBe(0);
  });

  test('does not start without the pepper of the keys, and says so in one sentence', async () => {
    const refused = await startProcess('gateway/stream/main.js', [], {
      ...namespace.env,
      KEY_PEPPER_FILE: '/nowhere/pepper',
    });
    expect(await refused.exited).toBe(2);
    expect(refused.output()).toMatch(
      /^stream cannot start: KEY_PEPPER_FILE .* cannot be read.*\n$/,
    );
  });
});
