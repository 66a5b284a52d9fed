import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { LogCollector, type LogRequest, type PendingRequest } from './log-collector.ts';

const SYMBOLS = ['AA', 'AB', 'AC'];

const pillAt = (offset: number, symbol: string) =>
  ({ partition: 0, offset, symbol }) as EffectivePill;

const requestOf = (after: number, symbols: readonly string[], every = 1): LogRequest => ({
  after: new Map([[0, after]]),
  symbols,
  matches: ({ offset, symbol }) =>
    offset % every === 0 && (symbols.includes('*') || symbols.includes(symbol)),
});

const pending = (request: LogRequest): PendingRequest => ({
  request,
  refusal: undefined,
  isAnswered: false,
});

/** Counts the checks of requests while 300 pills are read for a thousand equal requests. */
function readForThousand(room: number) {
  let steps = 0;
  const requests = Array.from({ length: 1_000 }, (): PendingRequest => {
    const request = requestOf(-1, ['*']);
    let reason: PendingRequest['refusal'];
    return {
      request: {
        ...request,
        matches(pill) {
          steps += 1;
          return request.matches(pill);
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
  const collector = new LogCollector({
    requests,
    starts,
    replayPillsMax: 1_000,
    room: () => room,
  });
  let mostInOneTake = 0;
  for (let offset = 0; offset < 300; offset += 1) {
    const before = steps;
    collector.take(pillAt(offset, 'AA'));
    mostInOneTake = Math.max(mostInOneTake, steps - before);
  }
  collector.join();
  return { mostInOneTake, reasons: new Set(requests.map(({ refusal }) => refusal)), collector };
}

describe('a thousand equal requests', () => {
  test('are refused in a few steps each if there is no room', () => {
    const { mostInOneTake, reasons, collector } = readForThousand(200);
    expect([...reasons]).toEqual(['replay_busy']);
    expect(collector.count).toBe(0);
    expect(collector.pills.get(0)).toEqual([]);
    // Each is checked for the pill and then refused, without checking any other again.
    expect(mostInOneTake).toBeLessThanOrEqual(4 * 1_000);
  });

  test('are all served if there is room', () => {
    const { mostInOneTake, reasons, collector } = readForThousand(300);
    expect([...reasons]).toEqual([undefined]);
    expect(collector.pills.get(0)).toHaveLength(300);
    expect(mostInOneTake).toBeLessThanOrEqual(4 * 1_000);
  });
});

test('a request that is not refused gets all its pills, whatever the others request', () => {
  const shape = fc.record({
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
      fc.array(shape, { minLength: 1, maxLength: 12 }),
      fc.array(fc.constantFrom(...SYMBOLS), { minLength: 20, maxLength: 60, size: 'max' }),
      fc.integer({ min: 0, max: 70 }),
      fc.integer({ min: 5, max: 60 }),
      fc.nat(60),
      (shapes, symbols, room, replayPillsMax, evictedFrom) => {
        const requests = shapes.map((one) => pending(requestOf(one.after, one.symbols, one.every)));
        const starts = new Map([[0, symbols.length]]);
        const collector = new LogCollector({
          requests,
          starts,
          replayPillsMax,
          room: () => room,
        });
        const log = symbols.map((symbol, offset) => pillAt(offset, symbol));
        // Evicted pills are taken first, but follow the read pills in the log.
        for (const pill of log.slice(evictedFrom)) collector.takeEvicted(pill);
        for (const pill of log.slice(0, evictedFrom)) collector.take(pill);
        collector.join();
        const kept = collector.pills.get(0) ?? [];
        expect(kept.length).toBe(collector.count);
        expect(kept.length).toBeLessThanOrEqual(room);
        expect(kept).toEqual(kept.toSorted((a, b) => a.offset - b.offset));
        const wantedBy = ({ request }: PendingRequest) =>
          log.filter((pill) => pill.offset > request.after.get(0)! && request.matches(pill));
        for (const one of requests) {
          seen[one.refusal ?? 'served']! += 1;
          const wanted = wantedBy(one);
          if (one.refusal === undefined) {
            expect(kept).toEqual(expect.arrayContaining(wanted));
            expect(wanted.length).toBeLessThanOrEqual(replayPillsMax);
          } else if (one.refusal === 'too_many_missed') {
            expect(wanted.length).toBeGreaterThan(replayPillsMax);
          } else {
            expect(new Set(requests.flatMap(wantedBy)).size).toBeGreaterThan(room);
          }
        }
      },
    ),
    { numRuns: 500 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
});
