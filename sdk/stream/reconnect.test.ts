import { describe, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { heartbeat, pillFrame, sendHandover, snapshotPill } from '../testing/scripted-frames.ts';
import { cursorsOf, readPills, useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();

describe('reconnecting', () => {
  test('after a drain: at the given time, from the position, without duplicates', async () => {
    const items = fixture.open()[Symbol.asyncIterator]();
    const reconnecting = fixture.record('reconnecting', 'drain');
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5', { snapshot: [] });
    first.send(pillFrame(6, null), {
      type: 'drain',
      reason: 'shutdown',
      grace_ms: 1,
      reconnect_after_ms: 3,
      position: 'e1:0-8',
    });
    first.close(4000);
    const second = await fixture.server.connection();
    const asked = await sendHandover(second, 'e1:0-9', {
      subscribed: { recovered: true, replaying: 2 },
      between: [pillFrame(6, null, { replayed: true }), pillFrame(9, null, { replayed: true })],
    });
    expect(asked.resume).toBe('e1:0-8');
    second.send(pillFrame(9, 6), pillFrame(10, 9));
    expect(cursorsOf(await readPills(items, 3))).toEqual(['0-6', '0-9', '0-10']);
    const events = reconnecting.map(({ event, value }) => [event, value]);
    expect(events[0]).toMatchObject(['drain', { reconnect_after_ms: 3 }]);
    expect(events[1]).toMatchObject(['reconnecting', { delayMs: 3, error: { code: 'drain' } }]);
  });

  test.each([false, true])('repeated pills are delivered once (backfill %s)', async (backfill) => {
    const items = fixture.open({ backfill })[Symbol.asyncIterator]();
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5', { snapshot: [snapshotPill(7)] });
    first.send(pillFrame(8, 7), pillFrame(9, 8));
    await readPills(items, 2);
    first.cut();
    const between = [pillFrame(8, 7), pillFrame(9, 8), pillFrame(10, 9)].map((one) => ({
      ...one,
      replayed: true,
    }));
    const second = await fixture.server.connection();
    await sendHandover(second, 'e1:0-10', { subscribed: { recovered: true }, between });
    second.send(pillFrame(10, 9), pillFrame(11, 10));
    expect(cursorsOf(await readPills(items, 2))).toEqual(['0-10', '0-11']);
  });

  test('a backfill pill below the snapshot is delivered', async () => {
    const items = fixture.open({ backfill: true })[Symbol.asyncIterator]();
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [snapshotPill(5, { cursor: '0-3' })] });
    connection.send(pillFrame(5, null, { backfill: true }));
    expect(cursorsOf(await readPills(items, 1))).toEqual(['0-5']);
  });

  test('4001: from the position and after the delay of the error frame', async () => {
    fixture.open();
    const events = fixture.record('error', 'reconnecting');
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5');
    first.send({
      type: 'error',
      code: 'slow_consumer',
      message: '1 MiB waited unread.',
      fatal: true,
      close: 4001,
      retry_after_ms: 20,
      position: 'e1:0-60',
    });
    first.close(4001);
    const second = await fixture.server.connection();
    expect((await sendHandover(second, 'e1:0-70')).resume).toBe('e1:0-60');
    expect(events.map(({ event }) => event)).toEqual(['error', 'reconnecting']);
    expect(events[0]!.value).toMatchObject({ code: 'slow_consumer', retryAfterMs: 20 });
    expect((events[1]!.value as { delayMs: number }).delayMs).toBeGreaterThanOrEqual(20);
  });

  test('after a cut connection: from the last pill', async () => {
    const items = fixture.open()[Symbol.asyncIterator]();
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5,1-7', { snapshot: [] });
    first.send(pillFrame(6, null));
    await readPills(items, 1);
    first.cut();
    const second = await fixture.server.connection();
    expect((await sendHandover(second, 'e1:0-6,1-7')).resume).toBe('e1:0-6,1-7');
  });

  test('mode latest: pills do not move the position, since they may overtake others', async () => {
    const items = fixture.open({ mode: 'latest' })[Symbol.asyncIterator]();
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5');
    first.send(pillFrame(9, null), pillFrame(7, null, { symbol: '0700.HK' }), heartbeat('e1:0-8'));
    expect(cursorsOf(await readPills(items, 2))).toEqual(['0-9', '0-7']);
    await waitFor('the heartbeat', () => fixture.stream.position === 'e1:0-8');
    first.cut();
    expect((await sendHandover(await fixture.server.connection(), 'e1:0-9')).resume).toBe('e1:0-8');
  });

  test('a first connection that fails is tried again', async () => {
    await fixture.server.close();
    fixture.open();
    const events = fixture.record('reconnecting');
    await waitFor('two attempts', () => events.length > 1);
    expect(events[0]!.value).toMatchObject({ attempt: 1, error: { code: 'connection_lost' } });
    expect(events[1]!.value).toMatchObject({ attempt: 2 });
  });

  test('the wait between attempts is at most reconnectMaxMs', async () => {
    await fixture.server.close();
    fixture.open({ reconnectMaxMs: 5 });
    const events = fixture.record('reconnecting');
    await waitFor('six attempts', () => events.length >= 6);
    const waits = events.map(({ value }) => value.delayMs);
    expect(Math.max(...waits)).toBeLessThanOrEqual(5);
  });

  test.each([4501, 4502, 4503, 4508, 4510, 1009])(
    '%i ends the stream, with the error',
    async (close) => {
      const items = fixture.open()[Symbol.asyncIterator]();
      const events = fixture.record('error', 'closed', 'reconnecting');
      const connection = await fixture.server.connection();
      await sendHandover(connection, 'e1:0-5');
      connection.send(pillFrame(6, null));
      if (close !== 1009) {
        connection.send({ type: 'error', code: 'refused', message: 'Ends.', fatal: true, close });
      }
      connection.close(close);
      expect(cursorsOf(await readPills(items, 1))).toEqual(['0-6']);
      await expect(items.next()).rejects.toMatchObject({
        name: 'PilloleError',
        closeCode: close,
        retry: 'never',
        position: 'e1:0-6',
        code: close === 1009 ? 'closed_1009' : 'refused',
      });
      expect(await items.next()).toEqual({ done: true, value: undefined });
      expect(events.map(({ event }) => event)).toEqual(['error', 'closed']);
      expect(fixture.server.connections).toBe(1);
    },
  );

  test('a connection without a frame for two heartbeats is dead', async () => {
    fixture.open();
    const events = fixture.record('dead', 'reconnecting', 'quiet');
    const first = await fixture.server.connection();
    await sendHandover(first, 'e1:0-5', { welcome: { heartbeat_ms: 500 } });
    const second = await fixture.server.connection();
    await sendHandover(second, 'e1:0-5');
    await waitFor('the first connection to be closed', () => !first.isOpen);
    expect(events.slice(0, 2).map(({ event }) => event)).toEqual(['dead', 'reconnecting']);
  });

  test('a silent generator or a closed market is quiet, not dead', async () => {
    fixture.open();
    const events = fixture.record('quiet', 'dead');
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { welcome: { heartbeat_ms: 1_000 } });
    const lunch = {
      type: 'quiet',
      symbol: '7203.T',
      reason: 'lunch_break',
      since: 'x',
      until: 'y',
    };
    connection.send(lunch);
    // Longer than two heartbeats, with several in each, so that a busy machine misses none.
    for (let beats = 0; beats < 12; beats += 1) {
      connection.send(heartbeat('e1:0-5', 'silent'));
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    expect(events.map(({ event, value }) => [event, (value as { reason: string }).reason])).toEqual(
      [
        ['quiet', 'lunch_break'],
        ['quiet', 'generator_silent'],
      ],
    );
    expect(fixture.server.connections).toBe(1);
  });
});
