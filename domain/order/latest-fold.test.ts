import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LatestPill } from '../../schemas/avro.ts';
import { foldLatest, orderOf } from './latest-fold.ts';

const latest: fc.Arbitrary<LatestPill> = fc
  .record({
    offset: fc.nat({ max: 20 }),
    last_offset: fc.option(fc.nat({ max: 20 })),
    processed_offset: fc.nat({ max: 30 }),
  })
  .map((fields) => ({
    epoch: 'e',
    prev_offset: null,
    id: `p${fields.offset}`,
    // A pill's times follow from its offset, as in the log: one offset, one pill.
    timestamp: (fields.offset * 7) % 5,
    symbol: 'A',
    gross_spread_percent: 0,
    market_state: 'open',
    confidence: 0,
    received_at: (fields.offset * 3) % 7,
    source: null,
    backfill: false,
    ...fields,
  }));

test('the order of writes does not matter: the fold is commutative, associative and idempotent', () => {
  fc.assert(
    fc.property(latest, latest, latest, (a, b, c) => {
      expect(foldLatest(a, b)).toEqual(foldLatest(b, a));
      expect(foldLatest(foldLatest(a, b), c)).toEqual(foldLatest(a, foldLatest(b, c)));
      expect(foldLatest(a, a)).toBe(a);
    }),
  );
});

test('no field ever goes back', () => {
  fc.assert(
    fc.property(latest, latest, (a, b) => {
      const folded = foldLatest(a, b);
      expect(orderOf(folded)).toBe(Math.max(orderOf(a), orderOf(b)));
      expect(folded.processed_offset).toBeGreaterThanOrEqual(a.processed_offset);
      expect(folded.last_offset ?? -1).toBeGreaterThanOrEqual(a.last_offset ?? -1);
    }),
  );
});
