import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openProducer } from '../../lib/kafka/producer.ts';
import { createEncoder, type LatestPill } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../testing/pills.ts';
import { startProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import {
  openStreamFixture,
  type StreamFixture,
  startStream,
  subscribe,
} from './testing/start-stream.ts';
import {
  type ConnectOptions,
  closeClients,
  connect as connectWith,
  framesOf,
} from './testing/stream-client.ts';

const SECOND = 1_000_000;

let fixture: StreamFixture;
let namespace: Namespace;
let writer: PillWriter;
let url: string;
let key: string;

beforeAll(async () => {
  fixture = await openStreamFixture();
  ({ namespace, writer, url, key } = fixture);
});

afterEach(closeClients);

afterAll(() => fixture?.close());

const connect = (to: string, options: ConnectOptions = {}) => connectWith(to, { key, ...options });

const now = () => Date.now() * 1000;
const live = (symbol: string, fields: Partial<PillRecord> = {}) => makePill({ symbol, ...fields });

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
  ])('%s is answered with %s, and the connection stays open', async (frame, code) => {
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

  test('too many frames per second end in 4006', async () => {
    const fast = await connect(url);
    // Far more than the burst: tokens come back while a busy machine sends.
    for (let n = 0; n < 60; n += 1) fast.send({ op: 'ping' });
    expect(await fast.until('error')).toMatchObject({ code: 'too_fast', fatal: true, close: 4006 });
    expect(await fast.closed).toMatchObject({ code: 4006, reason: 'too_fast' });
  });

  test('invalid UTF-8 and frames over 4 KiB end the connection, and no other', async () => {
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

  test('a page of a foreign origin is refused with 4507; a page of this machine is not', async () => {
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
    const statusOf = async (target: string | URL, init?: RequestInit) => {
      const response = await fetch(target, init);
      // Read to its end: undici ends the process if a connection closes before its answer is read.
      await response.arrayBuffer();
      return response.status;
    };
    expect(await statusOf(http)).toBe(426);
    expect(await statusOf(new URL('/health', http))).toBe(200);
    const page = await fetch(new URL('/problems/not-found', http));
    expect(await page.json()).toMatchObject({ code: 'not_found', type: '/problems/not-found' });
    expect(await statusOf(new URL('/problems', http))).toBe(200);
    expect(await statusOf(new URL('/ready', http))).toBe(200);
    expect(await statusOf(http, { method: 'POST', body: 'x'.repeat(100_000) })).toBe(426);
  });
});

describe('the process', () => {
  test('continues prev after a restart, from the latest topic', async () => {
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
    const started = await startStream(mine.env);
    try {
      const client = await connect(started.url, { key: account.key });
      await subscribe(client, { symbols: ['RESTART.T'] });
      // The row represents the records read before: they are not judged again.
      const [snapshot] = framesOf(client.frames, 'snapshot');
      expect(snapshot!.pills).toMatchObject([{ id: 'known', last_cursor: `${partition}-1` }]);
      // A repeat of a pill from before the start is recognised by the repeat window alone.
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

  test('drains on SIGTERM: drain frame, a last position, 4000, exit 0', async () => {
    const started = await startStream(namespace.env);
    const clients = await Promise.all(Array.from({ length: 5 }, () => connect(started.url)));
    for (const client of clients) await subscribe(client, { symbols: ['*'], snapshot: false });
    await writer.write([live('LAST.T')]);
    for (const client of clients) await client.until('pill');
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

  test('refuses to start without the pepper of the keys, with a one-sentence error', async () => {
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
