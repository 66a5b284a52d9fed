import { describe, expect, test } from 'vitest';
import { openArrivals, pillNumbersIn } from './arrivals.ts';

const RUN = { run: 'w1', pills: 4, endpoints: 1 };

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

describe('what came to an endpoint', () => {
  test('the first attempt counts as arrival, the first accepted one as got', () => {
    const book = openArrivals(RUN);
    book.take('msg_a', bodyOf('w1-1'), 100, false);
    book.take('msg_a', bodyOf('w1-1'), 200, true);
    const { firstMicros, acceptedMicros, acceptedTimes, attempts, doubledIds } = book.arrivals;
    expect([...firstMicros]).toEqual([0, 100, 0, 0]);
    expect([...acceptedMicros]).toEqual([0, 200, 0, 0]);
    expect([...acceptedTimes]).toEqual([0, 1, 0, 0]);
    expect([attempts, doubledIds, book.acceptedPills]).toEqual([2, 0, 1]);
  });

  test('a message that is accepted again is a double with the same id', () => {
    const book = openArrivals(RUN);
    for (const at of [1, 2, 3]) book.take('msg_a', bodyOf('w1-0', 'w1-1'), at, true);
    const { acceptedTimes, doubledIds, renamed } = book.arrivals;
    expect([...acceptedTimes]).toEqual([3, 3, 0, 0]);
    expect([doubledIds, renamed, book.acceptedPills]).toEqual([1, 0, 2]);
  });

  test('a pill under a second id is told, also where the first was not accepted', () => {
    const book = openArrivals(RUN);
    book.take('msg_a', bodyOf('w1-0'), 1, false);
    book.take('msg_b', bodyOf('w1-0', 'w1-1'), 2, true);
    expect(book.arrivals.renamed).toBe(1);
  });

  test('messages of another run, and pills beyond this one, count for nothing', () => {
    const book = openArrivals(RUN);
    expect(book.take('msg_a', bodyOf('w0-1'), 1, true)).toBe(0);
    expect(book.take('msg_b', bodyOf('w1-4'), 1, true)).toBe(0);
    expect([book.arrivals.attempts, book.acceptedPills]).toEqual([0, 0]);
  });
});
