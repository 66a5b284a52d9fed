import { describe, expect, test } from 'vitest';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import { makePill } from '../../../lib/testing/pills.ts';
import { createHearing } from './hearing.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { createRecent } from './recent.ts';
import { createSymbolWindow, createWindows } from './window.ts';

const pillAt = (partition: number, offset: number, fields: object = {}): EffectivePill => ({
  ...makePill({ symbol: `S${partition}`, id: `p${offset}`, timestamp: 1e15, ...fields }),
  ...{ partition, offset, received_at: 1e15 + offset, order: 1e15, late: false, backfill: false },
  ...{ prev: null, last: offset },
});

describe('recent pills', () => {
  test('the oldest go, over all partitions, and what is held from is told', () => {
    const recent = createRecent(10_000);
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

  test('repeats and conflicts are counted at the first, as are effects beyond the window', () => {
    const recent = createRecent(100);
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

  test('it holds the last 1,000, and their pace', () => {
    const window = createSymbolWindow(7);
    for (let n = 0; n < 2_500; n += 1) window.push(live(n));
    expect([window.count, window.isWhole, window.from]).toEqual([1_000, true, 7]);
    expect([...window.spreads()].sort((a, b) => a - b)).toEqual(
      Array.from({ length: 1_000 }, (_, n) => 1_500 + n),
    );
    expect(window.cadenceMs()).toBe(1_000);
  });

  test('older ones are put before those it has, and never push them out', () => {
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

  test('few pills: no pace before the second, and none of none', () => {
    const window = createSymbolWindow(0);
    expect([window.count, window.cadenceMs()]).toEqual([0, undefined]);
    window.push(live(1));
    expect(window.cadenceMs()).toBeUndefined();
    window.fill([live(0)]);
    expect(window.cadenceMs()).toBe(1_000);
  });

  test('of too many symbols the one goes that was asked for longest ago', () => {
    const windows = createWindows(2);
    windows.note('A', live(1), 0);
    windows.note('B', live(1), 0);
    windows.note('C', live(1), 0);
    expect(windows.peek('C')).toBeUndefined();
    windows.ask('A', () => createSymbolWindow(0));
    windows.ask('C', () => createSymbolWindow(9));
    expect([windows.peek('B'), windows.peek('C')?.from]).toEqual([undefined, 9]);
    windows.note('B', live(2), 0); // it would be taken for all there is
    expect(windows.peek('B')).toBeUndefined();
    windows.note('A', live(2), 0);
    expect(windows.peek('A')?.count).toBe(2);
  });
});

describe('hearing', () => {
  const open = () => {
    const now = { ms: 1_000_000 };
    const state = {
      caughtUp: true,
      connected: true,
      processor: 'up' as 'up' | 'stalled' | 'unknown',
    };
    const hearing = createHearing(
      {
        isCaughtUp: () => state.caughtUp,
        isConnected: () => state.connected,
        processor: () => state.processor,
      },
      () => now.ms,
    );
    return { now, state, hearing };
  };

  test('the log away: told after 2 s, over when it is back, and silence counts from then', () => {
    const { now, state, hearing } = open();
    expect([hearing.fault(), hearing.sinceMs()]).toEqual([undefined, 1_000_000]);
    state.connected = false;
    now.ms += VERIFY_LIMITS.awayMaxMs;
    expect(hearing.fault()).toBeUndefined();
    now.ms += 1;
    expect(hearing.fault()).toEqual({ code: 'log_unavailable', detail: 'for 2 s' });
    expect(hearing.sinceMs()).toBe(now.ms);
    state.connected = true;
    expect(hearing.fault()).toBeUndefined();
    now.ms += 10_000;
    expect(hearing.sinceMs()).toBe(now.ms - 10_000);
  });

  test.each([
    [{ caughtUp: false }, 'view_behind'],
    [{ processor: 'stalled' as const }, 'view_behind'],
    [{ processor: 'unknown' as const }, 'log_unavailable'],
  ])('%j is %s at once', (fields, code) => {
    const { state, hearing } = open();
    Object.assign(state, fields);
    expect(hearing.fault()?.code).toBe(code);
  });
});
