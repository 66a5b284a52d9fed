import { describe, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import {
  heartbeat,
  pillAt,
  pillFrame,
  sendHandover,
  snapshotPill,
  welcome,
} from '../testing/scripted-frames.ts';
import { cursorsOf, readPills, useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();

describe('a connection', () => {
  test('authenticates with its first frame, and delivers in order of arrival', async () => {
    const items = fixture.open()[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    expect(connection.url).toBe('/api/stream');
    const asked = await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5)] });
    expect(asked).toMatchObject({ symbols: ['7203.T'], mode: 'all', snapshot: true });
    expect(asked.resume).toBeUndefined();
    connection.send(pillFrame(6, 5), {
      type: 'pills',
      sent_at: '2026-11-20T01:02:04.000000Z',
      pills: [pillAt(7, 6), pillAt(9, 7)],
    });
    const read = await readPills(items, 3);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'pill', 'pill', 'pill']);
    expect(cursorsOf(read)).toEqual(['0-6', '0-7', '0-9']);
    expect(read[3]).toMatchObject({ sent_at: '2026-11-20T01:02:04.000000Z' });
    expect(fixture.stream.position).toBe('e1:0-9');
  });

  test('a ticket is in the address, a new one for each connection', async () => {
    let issued = 0;
    fixture.open({}, { key: undefined, ticket: async () => `pit_${++issued}` });
    const first = await fixture.server.connection();
    expect(first.url).toBe('/api/stream?ticket=pit_1');
    first.cut();
    expect((await fixture.server.connection()).url).toBe('/api/stream?ticket=pit_2');
  });

  test('many symbols need several frames; positions count when all are live', async () => {
    const symbols = Array.from({ length: 1_000 }, (_, n) => `SYMBOL${n}.T`);
    fixture.open({ symbols, snapshot: false });
    const opened = fixture.record('open');
    const connection = await fixture.server.connection();
    await connection.next('auth');
    connection.send(welcome());
    const asked: string[] = [];
    while (asked.length < symbols.length) {
      const frame = await connection.next('subscribe');
      expect(JSON.stringify(frame).length).toBeLessThanOrEqual(4_096);
      asked.push(...frame.symbols!);
      expect(opened).toHaveLength(0);
      connection.send(
        {
          type: 'subscribed',
          id: frame.id,
          accepted: frame.symbols,
          rejected: [],
          never_seen: [],
          mode: 'all',
          recovered: null,
          reason: null,
          replaying: 0,
          position: 'e1:0-1',
        },
        heartbeat('e1:0-1'),
        { type: 'live', id: frame.id, replayed: 0, position: 'e1:0-1' },
      );
    }
    expect(asked).toEqual(symbols);
    await waitFor('open', () => opened.length === 1);
    expect(fixture.stream.position).toBe('e1:0-1');
  });
});

test('a position ahead of the log is reported and not kept; the pills of its offsets are delivered', async () => {
  const items = fixture.open({ resume: 'e1:0-900,1-3', snapshot: false })[Symbol.asyncIterator]();
  const first = await fixture.server.connection();
  await sendHandover(first, 'e1:0-5,1-7', {
    subscribed: { recovered: false, reason: 'position_ahead' },
  });
  first.send(pillFrame(6, 5), pillFrame(7, 6));
  expect((await items.next()).value).toMatchObject({ type: 'gap', reason: 'position_ahead' });
  expect(cursorsOf(await readPills(items, 1))).toEqual(['0-6']);
  expect(fixture.stream.position).toBe('e1:0-6,1-7');
  expect(cursorsOf(await readPills(items, 1))).toEqual(['0-7']);
  // The log loses its end while the client is connected.
  first.cut();
  const second = await fixture.server.connection();
  const asked = await sendHandover(second, 'e1:0-6,1-7', {
    subscribed: { recovered: false, reason: 'position_ahead' },
  });
  expect(asked.resume).toBe('e1:0-7,1-7');
  second.send(pillFrame(7, 6, { id: 'another' }));
  expect((await items.next()).value).toMatchObject({ type: 'gap', reason: 'position_ahead' });
  expect((await items.next()).value).toMatchObject({ cursor: '0-7', id: 'another' });
});

describe('refusals', () => {
  const PARTLY_REFUSED = {
    subscribed: { accepted: ['7203.T'], rejected: [{ symbol: 'bad', code: 'symbol_malformed' }] },
  };

  test('error frames are reported, and the stream continues', async () => {
    const items = fixture.open()[Symbol.asyncIterator]();
    const errors = fixture.record('error');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5');
    connection.send(
      { type: 'error', code: 'internal', message: 'Odd.', fatal: false },
      pillFrame(6, 5),
    );
    await readPills(items, 1);
    expect(errors).toMatchObject([{ value: { code: 'internal' } }]);
  });

  test('a refused symbol ends the stream: the iterator throws its code, one error is reported', async () => {
    const items = fixture.open({ symbols: ['7203.T', 'bad'] })[Symbol.asyncIterator]();
    const errors = fixture.record('error');
    await sendHandover(await fixture.server.connection(), 'e1:0-5', PARTLY_REFUSED);
    const message = expect.stringContaining('"bad" (symbol_malformed)');
    await expect(items.next()).rejects.toMatchObject({ code: 'symbol_malformed', message });
    expect(errors).toHaveLength(1);
  });

  test("with refusedSymbols: 'deliver' a refusal is an item, once over all connections", async () => {
    const items = fixture
      .open({ symbols: ['7203.T', 'bad'], refusedSymbols: 'deliver', snapshot: false })
      [Symbol.asyncIterator]();
    const refused = fixture.record('refused');
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5', PARTLY_REFUSED);
    first.send(pillFrame(6, 5));
    const item = { type: 'refused', symbol: 'bad', code: 'symbol_malformed' };
    expect((await items.next()).value).toEqual(item);
    await readPills(items, 1);
    first.close(1012);
    const second = await fixture.server.connection();
    await sendHandover(second, 'e1:0-6', PARTLY_REFUSED);
    second.send(pillFrame(7, 6));
    expect((await items.next()).value).toMatchObject({ type: 'pill', cursor: '0-7' });
    expect(refused).toMatchObject([{ value: item }]);
  });

  test('a refused subscription ends the stream', async () => {
    const items = fixture
      .open({ filter: { min_spread: 2, max_spread: 1 } })
      [Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await connection.next('auth');
    connection.send(welcome());
    const { id } = await connection.next('subscribe');
    const message = '"filter" min_spread is above max_spread.';
    connection.send({ type: 'error', id, code: 'out_of_range', message, fatal: false });
    await expect(items.next()).rejects.toMatchObject({ code: 'out_of_range', message });
  });

  test('a subscription without any valid symbol ends the stream', async () => {
    const items = fixture.open({ symbols: ['bad'] })[Symbol.asyncIterator]();
    await sendHandover(await fixture.server.connection(), 'e1:0-5', {
      subscribed: { accepted: [], rejected: [{ symbol: 'bad', code: 'symbol_malformed' }] },
    });
    await expect(items.next()).rejects.toMatchObject({ code: 'symbol_malformed' });
  });
});
