import { describe, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { pillAt, pillFrame, sendHandover, snapshotPill } from '../testing/scripted-frames.ts';
import { NOT_FOUND } from '../testing/scripted-server.ts';
import { cursorsOf, readPills, useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();

describe('gaps', () => {
  test('a gap that prev shows is filled from history, before the pill that shows it', async () => {
    fixture.server.answer((url) => {
      expect(url.pathname).toBe('/api/pills');
      const page = url.searchParams.get('page');
      return { body: page === null ? PAGE_1 : { data: [pillAt(8, 7)], next: null } };
    });
    const PAGE_1 = { data: [pillAt(6, 5), pillAt(7, 6)], next: 'two' };
    const items = fixture.open()[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5)] });
    connection.send(pillFrame(9, 8), pillFrame(10, 9));
    const read = await readPills(items, 5);
    expect(cursorsOf(read)).toEqual(['0-6', '0-7', '0-8', '0-9', '0-10']);
    expect(read.map((item) => (item as { replayed?: true }).replayed ?? false)).toEqual(
      [false, true, true, true, false, false, false], // snapshot, three filled, gap, two live
    );
    expect(read[4]).toEqual({
      type: 'gap',
      symbols: ['7203.T'],
      after: '0-5',
      until: '0-8',
      reason: 'prev_broken',
      filled: true,
      pills: 3,
      error: undefined,
    });
    expect(fixture.server.requests[0]).toBe(
      '/api/pills?symbol=7203.T&epoch=e1&after=0-5&until=0-8&limit=5000',
    );
  });

  test('a gap that cannot be filled is reported, and the stream continues', async () => {
    fixture.server.answer(() => NOT_FOUND);
    const items = fixture.open()[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5)] });
    connection.send(pillFrame(9, 8), pillFrame(10, 9));
    const read = await readPills(items, 2);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'gap', 'pill', 'pill']);
    expect(read[1]).toMatchObject({ filled: false, pills: 0, error: { code: 'not_found' } });
  });

  test('a gap is not filled if history ends too early', async () => {
    fixture.server.answer(() => ({ body: { data: [pillAt(6, 5)], next: null } }));
    const items = fixture.open()[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5)] });
    connection.send(pillFrame(9, 8));
    const read = await readPills(items, 2);
    expect(cursorsOf(read)).toEqual(['0-6', '0-9']);
    expect(read[2]).toMatchObject({
      filled: false,
      pills: 1,
      error: { code: 'history_incomplete' },
    });
  });

  test('a gap of the server is filled from its address, while later frames wait', async () => {
    let release: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      release = resolve;
    });
    fixture.server.answer(async () => {
      await asked;
      return { body: { data: [pillAt(6, 5), pillAt(7, 6), pillAt(8, 7)], next: null } };
    });
    const items = fixture.open({ resume: 'e1:0-6' })[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-8', {
      subscribed: { recovered: false, reason: 'position_expired' },
      between: [
        {
          type: 'gap',
          symbols: ['7203.T'],
          after: '0-6',
          until: '0-8',
          reason: 'position_expired',
          fill_free: true,
          fill: '/api/pills?symbol=7203.T&epoch=e1&after=0-6&until=0-8&grant=g',
        },
        { type: 'snapshot', id: 's1', pills: [snapshotPill(8)], last: true, position: 'e1:0-8' },
      ],
    });
    connection.send(pillFrame(9, 8));
    await waitFor('the request', () => fixture.server.requests.length === 1);
    release();
    const read = await readPills(items, 3);
    expect(read.map(({ type }) => type)).toEqual(['pill', 'pill', 'gap', 'snapshot', 'pill']);
    expect(cursorsOf(read)).toEqual(['0-7', '0-8', '0-9']);
    expect(fixture.server.requests[0]).toMatch(/&grant=g&limit=5000$/);
  });

  test('the key is sent to no other address, whatever a frame says', async () => {
    const items = fixture.open()[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', {
      between: ['//evil.example/x', 'http://evil.example/x'].map((fill) => ({
        type: 'gap',
        symbols: ['7203.T'],
        after: '0-1',
        until: '0-2',
        reason: 'x',
        fill,
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

  test('after a failed resume, the gaps that the snapshot shows are filled', async () => {
    const items = fixture.open({ symbols: ['7203.T', '0700.HK'] })[Symbol.asyncIterator]();
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5', {
      snapshot: [snapshotPill(5), snapshotPill(4, { symbol: '0700.HK' })],
    });
    await items.next();
    first.cut();
    fixture.server.answer(() => ({ body: { data: [pillAt(7, 5), pillAt(8, 7)], next: null } }));
    const second = await fixture.server.connection();
    await sendHandover(second, 'e1:0-8', {
      subscribed: { recovered: false, reason: 'position_expired' },
      snapshot: [snapshotPill(8), snapshotPill(4, { symbol: '0700.HK' })],
    });
    second.send(pillFrame(9, 8));
    const read = await readPills(items, 3);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'pill', 'pill', 'gap', 'pill']);
    expect(read[3]).toMatchObject({
      symbols: ['7203.T'],
      after: '0-5',
      until: '0-8',
      reason: 'position_expired',
      filled: true,
      pills: 2,
    });
    expect(fixture.server.requests).toHaveLength(1);
  });

  test('another log: cursors of the old one do not count, and the gap is reported', async () => {
    const items = fixture.open({ resume: 'old1:0-99' })[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', {
      subscribed: { recovered: false, reason: 'epoch_unknown' },
      snapshot: [snapshotPill(5)],
    });
    connection.send(pillFrame(6, 5));
    const read = await readPills(items, 1);
    expect(read.map(({ type }) => type)).toEqual(['snapshot', 'gap', 'pill']);
    expect(read[1]).toMatchObject({ reason: 'epoch_unknown', filled: false, after: null });
    expect(fixture.stream.position).toBe('e1:0-6');
  });
});
