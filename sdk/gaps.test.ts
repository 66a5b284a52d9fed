import { describe, expect, test } from 'vitest';
import { waitFor } from '../lib/testing/wait.ts';
import { handOver, pill, pillAt, shown } from './testing/frames.ts';
import { cursorsOf, readPills, usePlayServer } from './testing/play.ts';
import { NOT_FOUND } from './testing/play-server.ts';

const play = usePlayServer();

describe('gaps', () => {
  test('a broken prev is filled from history, marked, before the pill that showed it', async () => {
    play.server.answer((url) => {
      expect(url.pathname).toBe('/api/pills');
      const page = url.searchParams.get('page');
      return { body: page === null ? PAGE_1 : { data: [pillAt(8, 7)], next: null } };
    });
    const PAGE_1 = { data: [pillAt(6, 5), pillAt(7, 6)], next: 'two' };
    const items = play.open()[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [shown(5)] });
    connection.send(pill(9, 8), pill(10, 9));
    const read = await readPills(items, 5);
    expect(cursorsOf(read)).toEqual(['0-6', '0-7', '0-8', '0-9', '0-10']);
    expect(read.map((item) => (item as { replayed?: true }).replayed ?? false)).toEqual(
      [false, true, true, true, false, false, false], // snapshot, three filled, gap, two live
    );
    expect(read[4]).toEqual({
      ...{ type: 'gap', symbols: ['7203.T'], after: '0-5', until: '0-8', reason: 'prev_broken' },
      ...{ filled: true, pills: 3, error: undefined },
    });
    expect(play.server.requests[0]).toBe(
      '/api/pills?symbol=7203.T&epoch=e1&after=0-5&until=0-8&limit=5000',
    );
  });

  test('one that cannot be filled is told, and the stream goes on', async () => {
    play.server.answer(() => NOT_FOUND);
    const items = play.open()[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [shown(5)] });
    connection.send(pill(9, 8), pill(10, 9));
    const read = await readPills(items, 2);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'gap', 'pill', 'pill']);
    expect(read[1]).toMatchObject({ filled: false, pills: 0, error: { code: 'not_found' } });
  });

  test('history that ends too early does not count as filled', async () => {
    play.server.answer(() => ({ body: { data: [pillAt(6, 5)], next: null } }));
    const items = play.open()[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [shown(5)] });
    connection.send(pill(9, 8));
    const read = await readPills(items, 2);
    expect(cursorsOf(read)).toEqual(['0-6', '0-9']);
    expect(read[2]).toMatchObject({
      filled: false,
      pills: 1,
      error: { code: 'history_incomplete' },
    });
  });

  test('one that the play.server tells is filled at its address; frames wait meanwhile', async () => {
    let release: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      release = resolve;
    });
    play.server.answer(async () => {
      await asked;
      return { body: { data: [pillAt(6, 5), pillAt(7, 6), pillAt(8, 7)], next: null } };
    });
    const items = play.open({ resume: 'e1:0-6' })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-8', {
      subscribed: { recovered: false, reason: 'position_expired' },
      between: [
        {
          ...{ type: 'gap', symbols: ['7203.T'], after: '0-6', until: '0-8' },
          ...{ reason: 'position_expired', fill_free: true },
          fill: '/api/pills?symbol=7203.T&epoch=e1&after=0-6&until=0-8&grant=g',
        },
        { type: 'snapshot', id: 's1', pills: [shown(8)], last: true, position: 'e1:0-8' },
      ],
    });
    connection.send(pill(9, 8));
    await waitFor('the request', () => play.server.requests.length === 1);
    release();
    const read = await readPills(items, 3);
    expect(read.map(({ type }) => type)).toEqual(['pill', 'pill', 'gap', 'snapshot', 'pill']);
    expect(cursorsOf(read)).toEqual(['0-7', '0-8', '0-9']);
    expect(play.server.requests[0]).toMatch(/&grant=g&limit=5000$/);
  });

  test('the key goes to no other address, whatever a frame says', async () => {
    const items = play.open()[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', {
      between: ['//evil.example/x', 'http://evil.example/x'].map((fill) => ({
        ...{ type: 'gap', symbols: ['7203.T'], after: '0-1', until: '0-2', reason: 'x', fill },
      })),
    });
    for (const _ of [1, 2]) {
      const { value } = await items.next();
      expect(value).toMatchObject({
        type: 'gap',
        filled: false,
        error: { code: 'not_configured' },
      });
    }
  });

  test('a resume that failed: what the snapshot shows to be missing is told', async () => {
    const items = play.open({ symbols: ['7203.T', '0700.HK'] })[Symbol.asyncIterator]();
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5', { snapshot: [shown(5), shown(4, { symbol: '0700.HK' })] });
    await items.next();
    first.cut();
    play.server.answer(() => ({ body: { data: [pillAt(7, 5), pillAt(8, 7)], next: null } }));
    const second = await play.server.connection();
    await handOver(second, 'e1:0-8', {
      subscribed: { recovered: false, reason: 'position_expired' },
      snapshot: [shown(8), shown(4, { symbol: '0700.HK' })],
    });
    second.send(pill(9, 8));
    const read = await readPills(items, 3);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'pill', 'pill', 'gap', 'pill']);
    expect(read[3]).toMatchObject({
      ...{ symbols: ['7203.T'], after: '0-5', until: '0-8', reason: 'position_expired' },
      ...{ filled: true, pills: 2 },
    });
    expect(play.server.requests).toHaveLength(1);
  });

  test('another log: nothing of the old one counts, and the gap is told', async () => {
    const items = play.open({ resume: 'old1:0-99' })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', {
      subscribed: { recovered: false, reason: 'epoch_unknown' },
      snapshot: [shown(5)],
    });
    connection.send(pill(6, 5));
    const read = await readPills(items, 1);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'gap', 'pill']);
    expect(read[1]).toMatchObject({ reason: 'epoch_unknown', filled: false, after: null });
    expect(play.stream.position).toBe('e1:0-6');
  });
});
