import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createKeyedCounter,
  createRateMeter,
  createSlidingCounter,
  type KeyedCounter,
} from './window-counter.ts';

describe('a sliding counter', () => {
  test('counts the events within the window', () => {
    const counter = createSlidingCounter(1_000);
    for (let ms = 0; ms < 3_000; ms += 10) counter.add(5_000 + ms);
    expect(counter.count(8_000 - 10)).toBe(100);
    expect(counter.count(8_450)).toBeGreaterThan(40);
    expect(counter.count(8_450)).toBeLessThan(60);
    expect(counter.count(9_100)).toBe(0);
    expect(counter.count(99_999_999)).toBe(0);
  });

  test('is exact to one slot: it counts all events of the last nine tenths of the window, and none before the window', () => {
    const steps = fc.array(fc.record({ waitMs: fc.nat(700), events: fc.nat(5) }));
    fc.assert(
      fc.property(steps, (all) => {
        const counter = createSlidingCounter(1_000);
        const came: { atMs: number; events: number }[] = [];
        let nowMs = 0;
        for (const { waitMs, events } of all) {
          nowMs += waitMs;
          counter.add(nowMs, events);
          came.push({ atMs: nowMs, events });
          const within = (ms: number) =>
            came.reduce((sum, one) => sum + (nowMs - one.atMs < ms ? one.events : 0), 0);
          expect(counter.count(nowMs)).toBeGreaterThanOrEqual(within(900));
          expect(counter.count(nowMs)).toBeLessThanOrEqual(within(1_000));
        }
      }),
    );
  });
});

test('a rate meter reports the last whole window, and 0 during the first', () => {
  const meter = createRateMeter(250, 1_000);
  meter.add(1_100, 50);
  expect(meter.perS(1_249)).toBe(0);
  expect(meter.perS(1_250)).toBe(200);
  meter.add(1_300, 10);
  expect(meter.perS(1_499)).toBe(200);
  expect(meter.perS(1_750)).toBe(20);
  expect(meter.perS(9_000)).toBe(0);
});

describe('a keyed counter', () => {
  let nowMs = 0;
  const open = (max: number, keysMax?: number) => {
    nowMs = 0;
    return createKeyedCounter({ max, windowMs: 60_000 }, () => nowMs, keysMax);
  };
  const take = (counter: KeyedCounter, times: number, key = 'a') =>
    Array.from({ length: times }, () => counter.take(key));

  test('allows events up to the limit, then returns the wait until the window of the key ends', () => {
    const counter = open(3);
    expect(take(counter, 5)).toEqual([0, 0, 0, 60, 60]);
    nowMs = 20_500;
    expect([...take(counter, 1), ...take(counter, 1, 'b')]).toEqual([40, 0]);
    nowMs = 59_999;
    expect(take(counter, 1)).toEqual([1]);
    nowMs = 60_000;
    expect(take(counter, 4)).toEqual([0, 0, 0, 60]);
  });

  test('refuses the first event at a limit of 0', () => {
    expect(take(open(0), 1)).toEqual([60]);
  });

  test('can uncount one event, or all events of a key', () => {
    const counter = open(1);
    take(counter, 1);
    counter.giveBack('a');
    expect(take(counter, 2)).toEqual([0, 60]);
    take(counter, 2, 'b');
    counter.forget('a');
    for (const key of ['a', 'unknown']) counter.giveBack(key);
    counter.forget('unknown');
    expect([...take(counter, 1), ...take(counter, 1, 'b')]).toEqual([0, 60]);
  });

  test('evicts windows that have ended and, beyond its bound, the oldest window', () => {
    const counter = open(1, 3);
    for (const key of ['a', 'b', 'c', 'd']) counter.take(key);
    expect([counter.size, counter.take('d'), counter.take('a')]).toEqual([3, 60, 0]);
    nowMs = 30_000;
    counter.take('younger');
    nowMs = 60_000;
    counter.take('e');
    expect(counter.size).toBe(2);
  });

  test('holds 50,000 keys by default', () => {
    const counter = open(1);
    for (let key = 0; key <= 50_000; key += 1) counter.take(`key ${key}`);
    expect(counter.size).toBe(50_000);
    expect([...take(counter, 1, 'key 1'), ...take(counter, 1, 'key 0')]).toEqual([60, 0]);
  });
});
