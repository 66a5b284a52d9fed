import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EffectivePill } from '../../../lib/order/judge.ts';
import { createLogCollector, type LogWish, type Waiting } from './log-collector.ts';

const SYMBOLS = ['AA', 'AB', 'AC'];

const pillAt = (offset: number, symbol: string) =>
  ({ partition: 0, offset, symbol }) as EffectivePill;

const wishOf = (after: number, symbols: readonly string[], every = 1): LogWish => ({
  after: new Map([[0, after]]),
  symbols,
  matches: ({ offset, symbol }) =>
    offset % every === 0 && (symbols.includes('*') || symbols.includes(symbol)),
});

const waits = (wish: LogWish): Waiting => ({ wish, refusal: undefined, isAnswered: false });

/** How often anybody was looked at while 300 pills were read for a thousand with equal wishes. */
function readForThousand(room: number) {
  let steps = 0;
  const waiting = Array.from({ length: 1_000 }, (): Waiting => {
    const wish = wishOf(-1, ['*']);
    let reason: Waiting['refusal'];
    return {
      wish: {
        ...wish,
        matches(pill) {
          steps += 1;
          return wish.matches(pill);
        },
      },
      get refusal() {
        steps += 1;
        return reason;
      },
      set refusal(given) {
        reason = given;
      },
      isAnswered: false,
    };
  });
  const starts = new Map([[0, 300]]);
  const collector = createLogCollector({
    ...{ waiting, starts, replayPillsMax: 1_000, room: () => room },
  });
  let mostInOneTake = 0;
  for (let offset = 0; offset < 300; offset += 1) {
    const before = steps;
    collector.take(pillAt(offset, 'AA'));
    mostInOneTake = Math.max(mostInOneTake, steps - before);
  }
  collector.join();
  return { mostInOneTake, reasons: new Set(waiting.map(({ refusal }) => refusal)), collector };
}

describe('a thousand with equal wishes', () => {
  test('are refused in a few steps each where there is no room', () => {
    const { mostInOneTake, reasons, collector } = readForThousand(200);
    expect([...reasons]).toEqual(['replay_busy']);
    expect(collector.count).toBe(0);
    expect(collector.pills.get(0)).toEqual([]);
    // Each is asked about the pill, and then refused: nobody is looked at again for the others.
    expect(mostInOneTake).toBeLessThanOrEqual(4 * 1_000);
  });

  test('are all served where there is', () => {
    const { mostInOneTake, reasons, collector } = readForThousand(300);
    expect([...reasons]).toEqual([undefined]);
    expect(collector.pills.get(0)).toHaveLength(300);
    expect(mostInOneTake).toBeLessThanOrEqual(4 * 1_000);
  });
});

test('whoever is not refused gets all it wants, whatever the others want', () => {
  const wish = fc.record({
    after: fc.integer({ min: -1, max: 60 }),
    symbols: fc.oneof(
      fc.uniqueArray(fc.constantFrom(...SYMBOLS), { minLength: 1 }),
      fc.constant(['*']),
    ),
    every: fc.integer({ min: 1, max: 4 }),
  });
  const seen: Record<string, number> = { served: 0, replay_busy: 0, too_many_missed: 0 };
  fc.assert(
    fc.property(
      fc.array(wish, { minLength: 1, maxLength: 12 }),
      fc.array(fc.constantFrom(...SYMBOLS), { minLength: 20, maxLength: 60, size: 'max' }),
      fc.integer({ min: 0, max: 70 }),
      fc.integer({ min: 5, max: 60 }),
      fc.nat(60),
      (wishes, symbols, room, replayPillsMax, forgottenFrom) => {
        const waiting = wishes.map((one) => waits(wishOf(one.after, one.symbols, one.every)));
        const starts = new Map([[0, symbols.length]]);
        const collector = createLogCollector({
          ...{ waiting, starts, replayPillsMax, room: () => room },
        });
        const log = symbols.map((symbol, offset) => pillAt(offset, symbol));
        // What is forgotten comes before what is read, and after it in the log.
        for (const pill of log.slice(forgottenFrom)) collector.takeForgotten(pill);
        for (const pill of log.slice(0, forgottenFrom)) collector.take(pill);
        collector.join();
        const kept = collector.pills.get(0) ?? [];
        expect(kept.length).toBe(collector.count);
        expect(kept.length).toBeLessThanOrEqual(room);
        expect(kept).toEqual(kept.toSorted((a, b) => a.offset - b.offset));
        const wantedBy = ({ wish }: Waiting) =>
          log.filter((pill) => pill.offset > wish.after.get(0)! && wish.matches(pill));
        for (const one of waiting) {
          seen[one.refusal ?? 'served']! += 1;
          const wanted = wantedBy(one);
          if (one.refusal === undefined) {
            expect(kept).toEqual(expect.arrayContaining(wanted));
            expect(wanted.length).toBeLessThanOrEqual(replayPillsMax);
          } else if (one.refusal === 'too_many_missed') {
            expect(wanted.length).toBeGreaterThan(replayPillsMax);
          } else {
            expect(new Set(waiting.flatMap(wantedBy)).size).toBeGreaterThan(room);
          }
        }
      },
    ),
    { numRuns: 500 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
});
