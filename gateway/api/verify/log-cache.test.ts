import { describe, expect, test } from 'vitest';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { makePill } from '../../../testing/pills.ts';
import { createFeedHealth } from './feed-health.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { createRecentPills } from './recent-pills.ts';
import { createSymbolWindow, createSymbolWindows } from './symbol-window.ts';

const pillAt = (partition: number, offset: number, fields: object = {}): EffectivePill => ({
  ...makePill({ symbol: `S${partition}`, id: `p${offset}`, timestamp: 1e15, ...fields }),
  partition,
  offset,
  received_at: 1e15 + offset,
  order: 1e15,
  late: false,
  backfill: false,
  prev: null,
  last: offset,
});

describe('recent pills', () => {
  test('the oldest pills of all partitions leave first; starts are the first offsets held', () => {
    const recent = createRecentPills(10_000);
    recent.begin(0, 100);
    recent.begin(1, 0);
    for (let at = 0; at < 30_000; at += 1) recent.append(pillAt(at % 2, 100 + (at >> 1)));
    expect([...recent.starts]).toEqual([
      [0, 10_100],
      [1, 10_100],
    ]);
    expect([...recent.ofSymbol('S0')]).toHaveLength(5_000);
    expect(recent.find('S0', 'p10099')).toBeUndefined();
    expect(recent.find('S1', 'p10100')?.pill.offset).toBe(10_100);
    expect(recent.findAll('p15099')).toHaveLength(2);
    expect(recent.oldestAt).toBe(1e15 + 10_100);
  });

  test('repeats and conflicts are counted with the first pill, also beyond the repeat window', () => {
    const recent = createRecentPills(100);
    recent.begin(0, 0);
    recent.append(pillAt(0, 1));
    recent.repeat(pillAt(0, 2, { id: 'p1' }));
    recent.repeat(pillAt(0, 3, { id: 'p1', confidence: 1 }));
    recent.append(pillAt(0, 4, { id: 'p1' }));
    recent.repeat(pillAt(0, 5, { id: 'unknown' }));
    expect(recent.find('S0', 'p1')).toMatchObject({
      repeats: 2,
      conflicts: 1,
      pill: { offset: 1 },
    });
    expect(recent.find('S0', 'unknown')).toBeUndefined();
  });
});

describe('windows', () => {
  const live = (n: number) => ({ spread: n, receivedAt: n * 1_000_000 });

  test('a window holds the last 1,000 pills and their cadence', () => {
    const window = createSymbolWindow(7);
    for (let n = 0; n < 2_500; n += 1) window.push(live(n));
    expect([window.count, window.isWhole, window.from]).toEqual([1_000, true, 7]);
    expect([...window.spreads()].sort((a, b) => a - b)).toEqual(
      Array.from({ length: 1_000 }, (_, n) => 1_500 + n),
    );
    expect(window.cadenceMs()).toBe(1_000);
  });

  test('filling inserts older pills first and never displaces newer ones', () => {
    const window = createSymbolWindow(500);
    for (let n = 500; n < 1_300; n += 1) window.push(live(n));
    expect(window.isWhole).toBe(false);
    window.fill(Array.from({ length: 400 }, (_, n) => live(100 + n)));
    expect(window.isWhole).toBe(true);
    expect(Math.min(...window.spreads())).toBe(300);
    window.push(live(1_300));
    expect(Math.min(...window.spreads())).toBe(301);
    expect(window.cadenceMs()).toBe(1_000);
  });

  test('no cadence before the second pill', () => {
    const window = createSymbolWindow(0);
    expect([window.count, window.cadenceMs()]).toEqual([0, undefined]);
    window.push(live(1));
    expect(window.cadenceMs()).toBeUndefined();
    window.fill([live(0)]);
    expect(window.cadenceMs()).toBe(1_000);
  });

  test('with too many symbols, the one requested longest ago leaves', () => {
    const windows = createSymbolWindows(2);
    windows.add('A', live(1), 0);
    windows.add('B', live(1), 0);
    windows.add('C', live(1), 0);
    expect(windows.peek('C')).toBeUndefined();
    windows.get('A', () => createSymbolWindow(0));
    windows.get('C', () => createSymbolWindow(9));
    expect([windows.peek('B'), windows.peek('C')?.from]).toEqual([undefined, 9]);
    windows.add('B', live(2), 0); // a new window would seem to hold all pills of B
    expect(windows.peek('B')).toBeUndefined();
    windows.add('A', live(2), 0);
    expect(windows.peek('A')?.count).toBe(2);
  });
});

describe('feed health', () => {
  const open = () => {
    const now = { ms: 1_000_000 };
    const state = {
      caughtUp: true,
      connected: true,
      processor: 'up' as 'up' | 'stalled' | 'unknown',
    };
    const health = createFeedHealth(
      {
        isCaughtUp: () => state.caughtUp,
        isConnected: () => state.connected,
        processor: () => state.processor,
      },
      () => now.ms,
    );
    return { now, state, health };
  };

  test('a lost log is reported after 2 s; silence counts from the reconnection', () => {
    const { now, state, health } = open();
    expect([health.fault(), health.connectedSinceMs()]).toEqual([undefined, 1_000_000]);
    state.connected = false;
    now.ms += VERIFY_LIMITS.disconnectedMaxMs;
    expect(health.fault()).toBeUndefined();
    now.ms += 1;
    expect(health.fault()).toEqual({ code: 'log_unavailable', detail: 'for 2 s' });
    expect(health.connectedSinceMs()).toBe(now.ms);
    state.connected = true;
    expect(health.fault()).toBeUndefined();
    now.ms += 10_000;
    expect(health.connectedSinceMs()).toBe(now.ms - 10_000);
  });

  test.each([
    [{ caughtUp: false }, 'view_behind'],
    [{ processor: 'stalled' as const }, 'view_behind'],
    [{ processor: 'unknown' as const }, 'log_unavailable'],
  ])('%j is %s at once', (fields, code) => {
    const { state, health } = open();
    Object.assign(state, fields);
    expect(health.fault()?.code).toBe(code);
  });
});
