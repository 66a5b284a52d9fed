import { describe, expect, test } from 'vitest';
import { waitFor } from '../lib/testing/wait.ts';
import { handOver, heartbeat, pill, pillAt, shown, welcome } from './testing/frames.ts';
import { cursorsOf, readPills, usePlayServer } from './testing/play.ts';

const play = usePlayServer();

describe('a connection', () => {
  test('says who it is by its first frame, and hands over in the order that came', async () => {
    const items = play.open()[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    expect(connection.url).toBe('/api/stream');
    const asked = await handOver(connection, 'e1:0-5', { snapshot: [shown(5)] });
    expect(asked).toMatchObject({ symbols: ['7203.T'], mode: 'all', snapshot: true });
    expect(asked.resume).toBeUndefined();
    connection.send(pill(6, 5), {
      ...{ type: 'pills', sent_at: '2026-11-20T01:02:04.000000Z' },
      pills: [pillAt(7, 6), pillAt(9, 7)],
    });
    const read = await readPills(items, 3);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'pill', 'pill', 'pill']);
    expect(cursorsOf(read)).toEqual(['0-6', '0-7', '0-9']);
    expect(read[3]).toMatchObject({ sent_at: '2026-11-20T01:02:04.000000Z' });
    expect(play.stream.position).toBe('e1:0-9');
  });

  test('a ticket stands in the address, and is asked for anew each time', async () => {
    let issued = 0;
    play.open({}, { key: undefined, ticket: async () => `pit_${++issued}` });
    const first = await play.server.connection();
    expect(first.url).toBe('/api/stream?ticket=pit_1');
    first.cut();
    expect((await play.server.connection()).url).toBe('/api/stream?ticket=pit_2');
  });

  test('many symbols go in frames below the limit; positions count when all are live', async () => {
    const symbols = Array.from({ length: 1_000 }, (_, n) => `SYMBOL${n}.T`);
    play.open({ symbols, snapshot: false });
    const opened = play.record('open');
    const connection = await play.server.connection();
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
          ...{ type: 'subscribed', id: frame.id, accepted: frame.symbols, rejected: [] },
          ...{ never_seen: [], mode: 'all', recovered: null, reason: null, replaying: 0 },
          position: 'e1:0-1',
        },
        heartbeat('e1:0-1'),
        { type: 'live', id: frame.id, replayed: 0, position: 'e1:0-1' },
      );
    }
    expect(asked).toEqual(symbols);
    await waitFor('open', () => opened.length === 1);
    expect(play.stream.position).toBe('e1:0-1');
  });
});

describe('refusals', () => {
  test('error frames are surfaced; the stream goes on', async () => {
    const items = play.open({ symbols: ['7203.T', 'bad'] })[Symbol.asyncIterator]();
    const errors = play.record('error');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', {
      subscribed: { accepted: ['7203.T'], rejected: [{ symbol: 'bad', code: 'symbol_malformed' }] },
    });
    connection.send({ type: 'error', code: 'internal', message: 'Odd.', fatal: false }, pill(6, 5));
    await readPills(items, 1);
    expect(errors.map(({ value }) => (value as { code: string }).code)).toEqual([
      'symbol_malformed',
      'internal',
    ]);
  });

  test('a subscription that the play.server refuses ends the stream', async () => {
    const items = play.open({ filter: { min_spread: 2, max_spread: 1 } })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await connection.next('auth');
    connection.send(welcome());
    const { id } = await connection.next('subscribe');
    const message = '"filter" min_spread is above max_spread.';
    connection.send({ type: 'error', id, code: 'out_of_range', message, fatal: false });
    await expect(items.next()).rejects.toMatchObject({ code: 'out_of_range', message });
  });

  test('no symbol that is one', async () => {
    const items = play.open({ symbols: ['bad'] })[Symbol.asyncIterator]();
    await handOver(await play.server.connection(), 'e1:0-5', {
      subscribed: { accepted: [], rejected: [{ symbol: 'bad', code: 'symbol_malformed' }] },
    });
    await expect(items.next()).rejects.toMatchObject({ code: 'symbol_malformed' });
  });
});
