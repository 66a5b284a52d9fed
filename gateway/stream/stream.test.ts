import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { partitionOf } from '../../schemas/partition.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import type { Namespace } from '../../testing/namespace.ts';
import { makePill, type PillWriter } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { openNarrowRelay } from './testing/narrow-relay.ts';
import { openStreamFixture, type StreamFixture, subscribe } from './testing/start-stream.ts';
import {
  type Client,
  type ConnectOptions,
  closeClients,
  connect as connectWith,
  framesOf,
  pillsOf,
} from './testing/stream-client.ts';

/** One symbol in each of three partitions: murmur2 mod 3 is 0, 1 and 2. */
const SYMBOLS = pickSymbols(3);
const SECOND = 1_000_000;

let fixture: StreamFixture;
let namespace: Namespace;
let writer: PillWriter;
let stream: TestProcess;
let url: string;
let key: string;

beforeAll(async () => {
  fixture = await openStreamFixture();
  ({ namespace, writer, stream, url, key } = fixture);
});

afterEach(closeClients);

afterAll(() => fixture?.close());

const connect = (to: string, options: ConnectOptions = {}) => connectWith(to, { key, ...options });

function pickSymbols(partitions: number): string[] {
  const picked: string[] = [];
  for (let n = 1; picked.filter(Boolean).length < partitions; n += 1) {
    picked[partitionOf(`S${n}.T`, partitions)] ??= `S${n}.T`;
  }
  return picked;
}

const now = () => Date.now() * 1000;
const live = (symbol: string, fields: Partial<PillRecord> = {}) => makePill({ symbol, ...fields });

describe('a subscription', () => {
  test('gets snapshot, live, then pills with an unbroken prev, over three partitions', async () => {
    await writer.write(SYMBOLS.map((symbol) => live(symbol)));
    const client = await connect(url);
    expect(await client.until('welcome')).toMatchObject({
      version: '1.0',
      epoch: namespace.settings.epoch,
      limits: { queue_bytes: 1_048_576, frame_in_bytes: 4_096 },
    });
    // Pills are written during the subscription.
    let writing = true;
    const written = (async () => {
      for (;;) {
        const pills = SYMBOLS.map((symbol) => live(symbol));
        await writer.write(pills);
        if (!writing) return pills;
      }
    })();
    await waitFor('the first pills', async () => {
      client.send({ op: 'subscribe', id: 's', symbols: SYMBOLS });
      const { never_seen } = await client.until('subscribed');
      await client.until('live');
      if (never_seen.length === 0) return true;
      await sleep(200); // the frames of a connection are limited
      return false;
    });
    await waitFor('500 pills', () => client.pills().length > 500);
    writing = false;
    const final = new Set((await written).map(({ id }) => id));
    await waitFor(
      'the last pills written',
      () => client.pills().filter(({ id }) => final.has(id)).length === final.size,
    );
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

  test('gets each pill of * once, even if a symbol is named too; TEST: symbols only when named', async () => {
    const everything = await connect(url);
    await subscribe(everything, { symbols: ['*'], snapshot: false });
    const named = await connect(url);
    await subscribe(named, { symbols: ['*'], snapshot: false });
    await subscribe(named, { symbols: ['TEST:A', 'ONCE.T'], snapshot: false });
    const [a, t, b] = [live('ONCE.T'), live('TEST:A'), live('ONCE.HK')];
    await writer.write([a, t]);
    await writer.write([b]);
    // Pills of other tests reach `*` too.
    const own = new Set([a.symbol, t.symbol, b.symbol]);
    const ids = (client: Client) =>
      client
        .pills()
        .filter(({ symbol }) => own.has(symbol))
        .map(({ id }) => id)
        .sort();
    // Partitions have no common order, so each pill may be the last.
    await waitFor('all pills', () => ids(everything).length >= 2 && ids(named).length >= 3);
    expect(ids(everything)).toEqual([a.id, b.id].sort());
    expect(ids(named)).toEqual([a.id, b.id, t.id].sort());
  });

  test('gets backfill, unchained, only on request', async () => {
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

  test('gets no repeats and no poison records, and neither affects other pills', async () => {
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
    // The position moves past records without effect.
    const heartbeat = await waitFor('a heartbeat past the records', async () => {
      // Without new pills, the generator would count as silent after a heartbeat's interval.
      await writer.write([live(SYMBOLS[(right + 2) % 3]!)]);
      const beats = framesOf(client.frames, 'heartbeat');
      return beats.find(({ sent, generator }) => sent === 2 && generator.state === 'alive');
    });
    expect(heartbeat.position).toContain(client.pills()[1]!.cursor);
    expect(heartbeat).toMatchObject({ sent: 2, skipped: 0, generator: { state: 'alive' } });
  });

  test('gets the pills that pass its filter, and the count of the others', async () => {
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
    const heartbeat = await waitFor('a heartbeat past the pills', async () => {
      const next = await client.until('heartbeat');
      return next.sent === 1 && next;
    });
    expect(heartbeat.filtered).toBe(3);
  });

  test('gets no pill of an unsubscribed symbol', async () => {
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

describe('a reader that never reads', () => {
  test('is closed with 4001 in all mode, while another client gets everything', async () => {
    const good = await connect(url);
    await subscribe(good, { symbols: ['SLOW.T'] });
    const relay = await openNarrowRelay(url);
    onTestFinished(relay.close);
    const deaf = await connect(relay.url);
    await subscribe(deaf, { symbols: ['SLOW.T'] });
    const latest = await connect(relay.url);
    await subscribe(latest, { symbols: ['SLOW.T'], mode: 'latest' });
    relay.pause();
    const metric = async () => {
      const text = await (await fetch(`${stream.opsUrl}/metrics`)).text();
      return /closed_total\{reason="slow_consumer"\} ([1-9]\d*)/.test(text);
    };
    let count = 0;
    const id = 'x'.repeat(120);
    await waitFor(
      'the socket that stopped reading to be closed',
      async () => {
        const pills = Array.from({ length: 2_000 }, () =>
          live('SLOW.T', { id: `${id}${count++}` }),
        );
        await writer.write(pills);
        return metric();
      },
      180_000,
    );
    await waitFor('all pills at the other client', () => good.pills().length === count);
    let last = '';
    for (const pill of good.pills()) {
      if (last !== '') expect(pill.prev).toBe(last);
      last = pill.cursor;
    }
    relay.resume();
    const error = await deaf.until('error');
    expect(error).toMatchObject({ code: 'slow_consumer', fatal: true, close: 4001 });
    expect((await deaf.closed).code).toBe(4001);
    // Everything up to the position in its error has arrived, and nothing after it.
    expect(error.position).toContain(deaf.pills().at(-1)!.cursor);
    expect(deaf.pills().length).toBeLessThan(count);
    // The `latest` reader has the newest pill, and its missed pills are counted.
    await waitFor('the newest', () => latest.pills().at(-1)?.cursor === last);
    const skipped = latest.pills().reduce((sum, pill) => sum + (pill.skipped ?? 0), 0);
    expect(skipped + latest.pills().length).toBe(count);
    const heartbeat = await waitFor('a heartbeat past the pills', async () => {
      const next = await latest.until('heartbeat');
      return next.sent === latest.pills().length && next;
    });
    expect(heartbeat.skipped).toBe(skipped);
  });
});
