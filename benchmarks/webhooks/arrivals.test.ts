import { describe, expect, test } from 'vitest';
import { countArrivals, pillNumbersIn } from './arrivals.ts';

const RUN = { run: 'w1', pills: 4 };

function bodyOf(...ids: readonly string[]): string {
  return JSON.stringify({ data: { pills: ids.map((id) => ({ cursor: '0-1', id, symbol: 'A' })) } });
}

describe('the pills in a body', () => {
  test.each([
    ['one alone', JSON.stringify({ data: { id: 'w1-3', prev: null } }), [3]],
    ['several, in their order', bodyOf('w1-2', 'w1-0'), [2, 0]],
    ['none of another run', bodyOf('w10-1', 'w1w-1', 'x-w1-1', 'w1-x'), []],
  ])('%s', (_, body, numbers) => {
    expect(pillNumbersIn(body, 'w1')).toEqual(numbers);
  });
});

describe('the arrivals at an endpoint', () => {
  test('the first attempt and the first accepted one have a time each', () => {
    const { arrivals, take } = countArrivals(RUN);
    take('msg_a', bodyOf('w1-1'), 100, false);
    take('msg_a', bodyOf('w1-1'), 200, true);
    const { firstMicros, times, accepted, attempts, doubledIds } = arrivals;
    expect([...firstMicros]).toEqual([0, 100, 0, 0]);
    expect(accepted).toEqual([{ atMicros: 200, pills: 1 }]);
    expect([...times]).toEqual([0, 1, 0, 0]);
    expect([attempts, doubledIds, arrivals.pills]).toEqual([2, 0, 1]);
  });

  test('a message that is accepted again is a duplicate with the same id', () => {
    const { arrivals, take } = countArrivals(RUN);
    for (const at of [1, 2, 3]) take('msg_a', bodyOf('w1-0', 'w1-1'), at, true);
    const { times, doubledIds, renamed } = arrivals;
    expect([...times]).toEqual([3, 3, 0, 0]);
    expect([doubledIds, renamed, arrivals.pills]).toEqual([1, 0, 2]);
  });

  test('a pill under a second id is counted, also where the first was not accepted', () => {
    const { arrivals, take } = countArrivals(RUN);
    take('msg_a', bodyOf('w1-0'), 1, false);
    take('msg_b', bodyOf('w1-0', 'w1-1'), 2, true);
    expect(arrivals.renamed).toBe(1);
  });

  test('messages of another run, and pills beyond this one, do not count', () => {
    const { arrivals, take } = countArrivals(RUN);
    expect(take('msg_a', bodyOf('w0-1'), 1, true)).toBe(0);
    expect(take('msg_b', bodyOf('w1-4'), 1, true)).toBe(0);
    expect([arrivals.attempts, arrivals.pills]).toEqual([0, 0]);
  });
});
