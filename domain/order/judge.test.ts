import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TopicSettings } from '../../schemas/avro.ts';
import { partitionOf } from '../../schemas/partition.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import { createPartitionJudge, type SymbolState } from './judge.ts';

const settings: TopicSettings = {
  epoch: 'e1',
  created_at: 0,
  partitions: 1,
  repeat_window: 8,
  backfill_age_ms: 60_000,
  confidence_max: 100,
  symbols_max: 3,
};
const SECOND = 1_000_000;
const NOW = 1_763_600_000 * SECOND;

const record = (fields: Partial<PillRecord> = {}): PillRecord => ({
  id: 'p',
  timestamp: NOW,
  symbol: 'A',
  gross_spread_percent: 0,
  market_state: 'open',
  confidence: 1,
  received_at: NOW,
  source: null,
  kind: null,
  ...fields,
});

const judgeOf = (
  overrides: Partial<TopicSettings> = {},
  symbols = new Map<string, SymbolState>(),
) =>
  createPartitionJudge({
    partition: 0,
    settings: { ...settings, ...overrides },
    symbols,
    compareContent: true,
  });

const key = Buffer.from('A');

describe('judge', () => {
  test.each([
    ['a trusted receive time', NOW - 5 * SECOND, NOW, NOW - 5 * SECOND],
    ['a receive time 5 s and 1 µs off', NOW - 5 * SECOND - 1, NOW, NOW],
    ['a receive time far in the future', NOW + 3600 * SECOND, NOW, NOW],
    ['none', null, NOW, NOW],
  ])('received_at with %s', (_, received_at, appended, expected) => {
    const verdict = judgeOf().judge(
      record({ received_at, timestamp: NOW - 9 * SECOND }),
      key,
      0,
      appended,
    );
    expect(verdict).toMatchObject({ kind: 'effect', pill: { received_at: expected } });
  });

  test('a fast clock cannot hold back newer pills: order time is min(timestamp, received)', () => {
    const judge = judgeOf();
    judge.judge(record({ id: '1', timestamp: NOW + 200 * SECOND }), key, 0, NOW);
    const next = judge.judge(
      record({ id: '2', timestamp: NOW + SECOND, received_at: NOW + SECOND }),
      key,
      1,
      NOW + SECOND,
    );
    expect(next).toMatchObject({ kind: 'effect', pill: { late: false, prev: 0 } });
  });

  test.each([
    [60_000, false],
    [60_001, true],
  ])('received %d ms after its timestamp: backfill %s', (age, backfill) => {
    const verdict = judgeOf().judge(record({ timestamp: NOW - age * 1000 }), key, 0, NOW);
    expect(verdict).toMatchObject({ kind: 'effect', pill: { backfill } });
  });

  test('prev names the previous live pill with effect, skipping repeats, rejects and backfill', () => {
    const judge = judgeOf();
    const live = (id: string, offset: number) =>
      judge.judge(
        record({ id, timestamp: NOW + offset, received_at: NOW + offset }),
        key,
        offset,
        NOW + offset,
      );
    expect(live('1', 0)).toMatchObject({ pill: { prev: null } });
    expect(live('1', 1)).toEqual({ kind: 'repeat', conflict: true }); // other timestamp
    judge.judge(record({ id: 'old', timestamp: NOW - 90 * SECOND }), key, 2, NOW);
    judge.judge(record({ id: 'bad', confidence: 101 }), key, 3, NOW);
    expect(live('2', 4)).toMatchObject({ pill: { prev: 0 } });
  });

  test('at the bound of symbols, new ones are rejected and known ones still accepted', () => {
    const judge = judgeOf();
    for (const [offset, symbol] of ['A', 'B', 'C'].entries()) {
      expect(judge.judge(record({ symbol }), Buffer.from(symbol), offset, NOW).kind).toBe('effect');
    }
    expect(judge.judge(record({ symbol: 'D' }), Buffer.from('D'), 3, NOW)).toMatchObject({
      kind: 'rejected',
      code: 'symbol_limit',
    });
    expect(judge.judge(record({ symbol: 'A', id: 'new' }), key, 4, NOW).kind).toBe('effect');
  });

  test.each([
    ['65 characters', 'x'.repeat(65), 'rejected'],
    ['a mebibyte', 'x'.repeat(1 << 20), 'rejected'],
    ['a control character', 'a\u0000', 'rejected'],
    ['nothing', '', 'rejected'],
    ['64 characters', 'x'.repeat(64), 'effect'],
    ['null', null, 'effect'],
  ])('a source of %s: a direct producer cannot make a row large', (_, source, kind) => {
    expect(judgeOf().judge(record({ source }), key, 0, NOW).kind).toBe(kind);
  });

  test('a symbol in another partition is rejected', () => {
    const wrong = 1 - partitionOf('A', 2);
    const judge = createPartitionJudge({
      partition: wrong,
      settings: { ...settings, partitions: 2 },
      symbols: new Map(),
      compareContent: false,
    });
    expect(judge.judge(record(), key, 0, NOW)).toMatchObject({ code: 'wrong_partition' });
  });

  test('a judge restored at any offset decides like a judge that has read the whole log', () => {
    const step = fc.record({
      id: fc.integer({ min: 0, max: 10 }).map(String),
      symbol: fc.constantFrom('A', 'B'),
      timestamp: fc.integer({ min: NOW - 100 * SECOND, max: NOW + SECOND }),
      confidence: fc.constantFrom(1, 1, 1, 101),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(), (steps, cutAt) => {
        const cut = steps.length === 0 ? 0 : cutAt % steps.length;
        const whole = judgeOf();
        const feed = (judge: ReturnType<typeof judgeOf>, offset: number) =>
          judge.judge(record(steps[offset]!), Buffer.from(steps[offset]!.symbol), offset, NOW);
        for (let offset = 0; offset < cut; offset += 1) feed(whole, offset);
        const symbols = new Map([...whole.symbols].map(([name, state]) => [name, { ...state }]));
        const restored = judgeOf({}, symbols);
        for (let offset = Math.max(0, cut - settings.repeat_window); offset < cut; offset += 1) {
          restored.warmUp(record(steps[offset]!), Buffer.from(steps[offset]!.symbol), offset, NOW);
        }
        for (let offset = cut; offset < steps.length; offset += 1) {
          const [a, b] = [feed(whole, offset), feed(restored, offset)];
          // Only the detection of a conflict may need a record from before the window.
          if (a.kind === 'repeat') expect(b.kind).toBe('repeat');
          else expect(b).toEqual(a);
        }
      }),
      { numRuns: 500 },
    );
  });
});
