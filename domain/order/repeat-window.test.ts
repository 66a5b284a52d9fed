import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Pill } from '../../schemas/pill.ts';
import { createRepeatWindow } from './repeat-window.ts';

const pill = (id: string, confidence = 1): Pill => ({
  id,
  timestamp: 0,
  symbol: 'A',
  gross_spread_percent: 0,
  market_state: 'open',
  confidence,
});

/** Offsets with holes, and few identities, for many repeats. */
const log = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 12 })), {
    maxLength: 200,
  })
  .map((steps) => {
    let offset = -1;
    return steps.map(([step, id]) => {
      offset += step;
      return { offset, id: String(id) };
    });
  });

describe('repeat window', () => {
  test('a repeat is the same identity at one of the previous `size` offsets', () => {
    fc.assert(
      fc.property(log, fc.integer({ min: 1, max: 16 }), (records, size) => {
        const window = createRepeatWindow(size, false);
        for (const [at, { offset, id }] of records.entries()) {
          const expected = records
            .slice(0, at)
            .some((other) => other.id === id && other.offset >= offset - size);
          expect(window.observe(pill(id), offset)).toBe(expected ? 'repeat' : 'first');
          expect(window.count).toBeLessThanOrEqual(size + 1);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a window warmed up with the last `size` offsets decides like a full one', () => {
    fc.assert(
      fc.property(log, fc.integer({ min: 1, max: 16 }), fc.nat(), (records, size, cut) => {
        const start = records[cut % Math.max(1, records.length)]?.offset ?? 0;
        const whole = createRepeatWindow(size, false);
        const warmed = createRepeatWindow(size, false);
        for (const { offset, id } of records) {
          const decision = whole.observe(pill(id), offset);
          if (offset < start - size) continue;
          const other = warmed.observe(pill(id), offset);
          if (offset >= start) expect(other).toBe(decision);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('a repeat renews its identity', () => {
    const window = createRepeatWindow(3, false);
    expect(window.observe(pill('x'), 0)).toBe('first');
    expect(window.observe(pill('x'), 3)).toBe('repeat');
    expect(window.observe(pill('x'), 6)).toBe('repeat');
    expect(window.observe(pill('x'), 10)).toBe('first');
  });

  test('other content is a conflict, compared with the first content', () => {
    const window = createRepeatWindow(100, true);
    expect(window.observe(pill('x', 1), 0)).toBe('first');
    expect(window.observe(pill('x', 2), 1)).toBe('conflict');
    expect(window.observe(pill('x', 2), 2)).toBe('conflict');
    expect(window.observe(pill('x', 1), 3)).toBe('repeat');
  });

  test('ids that are long or not Latin count like others; a symbol is part of the identity', () => {
    const window = createRepeatWindow(10, false);
    const ids = ['x'.repeat(128), 'x'.repeat(127), '取引-1', '取引-2', 'é'];
    for (const [at, id] of ids.entries()) expect(window.observe(pill(id), at)).toBe('first');
    for (const [at, id] of ids.entries()) expect(window.observe(pill(id), 5 + at)).toBe('repeat');
    expect(window.observe({ ...pill('é'), symbol: 'B' }, 10)).toBe('first');
  });

  test('at the size in use, memory is bounded by the window', () => {
    const window = createRepeatWindow(32_768, false);
    for (let offset = 0; offset < 100_000; offset += 1) window.observe(pill(`p${offset}`), offset);
    expect(window.count).toBeLessThanOrEqual(32_769);
  });
});
