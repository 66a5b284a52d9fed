import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRowIndex, hashText, NO_ROW } from '../../lib/columns/row-index.ts';
import { createRowQueue } from '../../lib/columns/row-queue.ts';
import { createTextColumn } from '../../lib/columns/text-column.ts';
import type { EffectivePill } from './judge.ts';
import { createPillColumns } from './pill-columns.ts';
import { ID_WIDTH } from './repeat-window.ts';

const text = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 128 }),
  fc.string({ unit: 'grapheme', maxLength: 128 }),
  fc.string({ minLength: ID_WIDTH - 1, maxLength: ID_WIDTH + 1 }),
);
const offset = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const pill: fc.Arbitrary<EffectivePill> = fc
  .record({
    ...{ id: text, timestamp: offset, symbol: text, market_state: text },
    gross_spread_percent: fc.double({ noNaN: true }),
    confidence: fc.double({ noNaN: true }),
    ...{ source: fc.option(text), kind: fc.option(text), received_at: offset },
    ...{ partition: fc.nat({ max: 4_095 }), offset, late: fc.boolean(), backfill: fc.boolean() },
    ...{ prev: fc.option(offset), last: fc.option(offset) },
  })
  .map((fields) => ({ ...fields, order: Math.min(fields.timestamp, fields.received_at) }));

describe('pill columns', () => {
  test('a row gives back the pill that was set last, in whatever order rows are set and cleared', () => {
    const step = fc.tuple(fc.constantFrom(0, 1, 1_023, 1_024, 5_000), fc.option(pill));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const columns = createPillColumns();
        const view = columns.createView();
        const held = new Map<number, EffectivePill>();
        for (const [row, next] of steps) {
          if (held.delete(row)) columns.clear(row);
          if (next === null) continue;
          columns.set(row, next);
          held.set(row, next);
        }
        for (const [row, expected] of held) {
          expect(columns.get(row)).toEqual(expected);
          view.move(row);
          expect(expected).toMatchObject({ symbol: view.symbol, late: view.late });
          expect(expected).toMatchObject({ backfill: view.backfill, confidence: view.confidence });
          expect(view.market_state).toBe(expected.market_state);
          expect(view.received_at).toBe(columns.receivedAtOf(row));
        }
        const texts = [...held.values()].flatMap((p) => [
          p.symbol,
          p.market_state,
          p.source,
          p.kind,
        ]);
        expect(columns.names.size).toBe(new Set(texts.filter((one) => one !== null)).size);
      }),
    );
  });
});

describe('columns', () => {
  test('a text is equal to itself alone, also one that does not fit its row', () => {
    fc.assert(
      fc.property(text, text, text, (before, own, other) => {
        const column = createTextColumn(2, ID_WIDTH);
        column.set(0, before);
        column.set(0, own);
        column.set(1, other);
        expect(column.get(0)).toBe(own);
        expect(column.has(0, own)).toBe(true);
        expect(column.has(0, other)).toBe(own === other);
        column.clear(0);
        expect(column.get(0)).toBe('');
      }),
    );
  });

  test('an index finds each row that was added and not removed, also of one bucket', () => {
    const step = fc.tuple(fc.nat({ max: 15 }), fc.constantFrom(0, 16, 32, 5, -1));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const index = createRowIndex(16);
        const held = new Map<number, number>();
        for (const [row, hash] of steps) {
          const known = held.get(row);
          if (known !== undefined) {
            index.remove(known, row);
            held.delete(row);
          } else {
            index.add(hash, row);
            held.set(row, hash);
          }
        }
        for (const hash of [0, 16, 32, 5, -1]) {
          const found: number[] = [];
          for (let row = index.first(hash); row !== NO_ROW; row = index.next(row)) found.push(row);
          const own = [...held].filter(([, of]) => of === hash).map(([row]) => row);
          expect(found).toEqual(expect.arrayContaining(own));
          expect(new Set(found).size).toBe(found.length);
        }
      }),
    );
  });

  test('ids that differ in one character spread over an index', () => {
    const buckets = new Set(Array.from({ length: 4_096 }, (_, n) => hashText(`p${n}`) & 4_095));
    // Of random hashes, 1 − 1/e of the buckets are used: some 2,589.
    expect(buckets.size).toBeGreaterThan(2_000);
  });

  test('a queue of rows is like an array, at both ends', () => {
    const step = fc.oneof(fc.nat(1e6), fc.constantFrom<'shift' | 'unshift'>('shift', 'unshift'));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
        const queue = createRowQueue();
        const model: number[] = [];
        for (const [at, one] of steps.entries()) {
          if (one === 'shift') {
            if (model.length > 0) expect(queue.shift()).toBe(model.shift());
          } else if (one === 'unshift') {
            queue.unshift(at);
            model.unshift(at);
          } else {
            queue.push(one);
            model.push(one);
          }
        }
        expect(Array.from({ length: queue.length }, (_, at) => queue.at(at))).toEqual(model);
      }),
    );
  });
});
