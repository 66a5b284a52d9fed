import { describe, expect, test } from 'vitest';
import { waitFor } from '../lib/testing/wait.ts';
import { handOver, heartbeat, pill, shown } from './testing/frames.ts';
import { cursorsOf, readPills, usePlayServer } from './testing/play.ts';

const play = usePlayServer();

describe('coming back', () => {
  test('after a drain: when it was told, from the position, nothing doubled', async () => {
    const items = play.open()[Symbol.asyncIterator]();
    const reconnecting = play.record('reconnecting', 'drain');
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5', { snapshot: [] });
    first.send(pill(6, null), {
      ...{ type: 'drain', reason: 'shutdown', grace_ms: 1, reconnect_after_ms: 3 },
      position: 'e1:0-8',
    });
    first.close(4000);
    const second = await play.server.connection();
    const asked = await handOver(second, 'e1:0-9', {
      subscribed: { recovered: true, replaying: 2 },
      between: [pill(6, null, { replayed: true }), pill(9, null, { replayed: true })],
    });
    expect(asked.resume).toBe('e1:0-8');
    second.send(pill(9, 6), pill(10, 9));
    expect(cursorsOf(await readPills(items, 3))).toEqual(['0-6', '0-9', '0-10']);
    const told = reconnecting.map(({ event, value }) => [event, value]);
    expect(told[0]).toMatchObject(['drain', { reconnect_after_ms: 3 }]);
    expect(told[1]).toMatchObject(['reconnecting', { delayMs: 3, error: { code: 'drain' } }]);
  });

  test.each([false, true])(
    'what comes again is handed over once (backfill %s)',
    async (backfill) => {
      const items = play.open({ backfill })[Symbol.asyncIterator]();
      const first = await play.server.connection();
      await handOver(first, 'e1:0-5', { snapshot: [shown(7)] });
      first.send(pill(8, 7), pill(9, 8));
      await readPills(items, 2);
      first.cut();
      const between = [pill(8, 7), pill(9, 8), pill(10, 9)].map((one) => ({
        ...one,
        replayed: true,
      }));
      const second = await play.server.connection();
      await handOver(second, 'e1:0-10', { subscribed: { recovered: true }, between });
      second.send(pill(10, 9), pill(11, 10));
      expect(cursorsOf(await readPills(items, 2))).toEqual(['0-10', '0-11']);
    },
  );

  test('a pill of backfill that no snapshot shows is handed over', async () => {
    const items = play.open({ backfill: true })[Symbol.asyncIterator]();
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { snapshot: [shown(5, { cursor: '0-3' })] });
    connection.send(pill(5, null, { backfill: true }));
    expect(cursorsOf(await readPills(items, 1))).toEqual(['0-5']);
  });

  test('4001 tells its position and how long to wait', async () => {
    play.open();
    const events = play.record('error', 'reconnecting');
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5');
    first.send({
      ...{ type: 'error', code: 'slow_consumer', message: '1 MiB waited unread.', fatal: true },
      ...{ close: 4001, retry_after_ms: 20, position: 'e1:0-60' },
    });
    first.close(4001);
    const second = await play.server.connection();
    expect((await handOver(second, 'e1:0-70')).resume).toBe('e1:0-60');
    expect(events.map(({ event }) => event)).toEqual(['error', 'reconnecting']);
    expect(events[0]!.value).toMatchObject({ code: 'slow_consumer', retryAfterMs: 20 });
    expect((events[1]!.value as { delayMs: number }).delayMs).toBeGreaterThanOrEqual(20);
  });

  test('cut without a word: it comes back from the last pill', async () => {
    const items = play.open()[Symbol.asyncIterator]();
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5,1-7', { snapshot: [] });
    first.send(pill(6, null));
    await readPills(items, 1);
    first.cut();
    const second = await play.server.connection();
    expect((await handOver(second, 'e1:0-6,1-7')).resume).toBe('e1:0-6,1-7');
  });

  test('in mode latest pills say nothing of the position: they may overtake', async () => {
    const items = play.open({ mode: 'latest' })[Symbol.asyncIterator]();
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5');
    first.send(pill(9, null), pill(7, null, { symbol: '0700.HK' }), heartbeat('e1:0-8'));
    expect(cursorsOf(await readPills(items, 2))).toEqual(['0-9', '0-7']);
    await waitFor('the heartbeat', () => play.stream.position === 'e1:0-8');
    first.cut();
    expect((await handOver(await play.server.connection(), 'e1:0-9')).resume).toBe('e1:0-8');
  });

  test('a first connection that cannot be made is tried again', async () => {
    await play.server.close();
    play.open();
    const events = play.record('reconnecting');
    await waitFor('two attempts', () => events.length > 1);
    expect(events[0]!.value).toMatchObject({ attempt: 1, error: { code: 'connection_lost' } });
    expect(events[1]!.value).toMatchObject({ attempt: 2 });
  });

  test.each([4501, 4502, 4503, 4508, 4510, 1009])('%i ends it, with the error', async (close) => {
    const items = play.open()[Symbol.asyncIterator]();
    const events = play.record('error', 'closed', 'reconnecting');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5');
    connection.send(pill(6, null));
    if (close !== 1009) {
      connection.send({ type: 'error', code: 'told', message: 'Ends.', fatal: true, close });
    }
    connection.close(close);
    expect(cursorsOf(await readPills(items, 1))).toEqual(['0-6']);
    await expect(items.next()).rejects.toMatchObject({
      ...{ name: 'PilloleError', closeCode: close, retry: 'never', position: 'e1:0-6' },
      code: close === 1009 ? 'closed_1009' : 'told',
    });
    expect(await items.next()).toEqual({ done: true, value: undefined });
    expect(events.map(({ event }) => event)).toEqual(['error', 'closed']);
    expect(play.server.connections).toBe(1);
  });

  test('silence is death: two heartbeats without a frame', async () => {
    play.open();
    const events = play.record('dead', 'reconnecting', 'quiet');
    const first = await play.server.connection();
    await handOver(first, 'e1:0-5', { welcome: { heartbeat_ms: 100 } });
    const second = await play.server.connection();
    await handOver(second, 'e1:0-5', { welcome: { heartbeat_ms: 100 } });
    await waitFor('the first to be closed', () => !first.isOpen);
    expect(events.slice(0, 2).map(({ event }) => event)).toEqual(['dead', 'reconnecting']);
  });

  test('quiet is alive: the generator may be silent, a market closed', async () => {
    play.open();
    const events = play.record('quiet', 'dead');
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5', { welcome: { heartbeat_ms: 200 } });
    const lunch = {
      type: 'quiet',
      symbol: '7203.T',
      reason: 'lunch_break',
      since: 'x',
      until: 'y',
    };
    connection.send(lunch);
    for (let beats = 0; beats < 12; beats += 1) {
      connection.send(heartbeat('e1:0-5', 'silent'));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(events.map(({ event, value }) => [event, (value as { reason: string }).reason])).toEqual(
      [
        ['quiet', 'lunch_break'],
        ['quiet', 'generator_silent'],
      ],
    );
    expect(play.server.connections).toBe(1);
  });
});
