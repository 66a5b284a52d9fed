import { expect, test } from 'vitest';
import { cachedFor } from './cached-for.ts';

test('concurrent callers share one refresh; a failure is not cached', async () => {
  let calls = 0;
  const get = cachedFor(60_000, async () => {
    calls += 1;
    if (calls === 1) throw new Error('unavailable');
    return calls;
  });
  const both = await Promise.allSettled([get(), get()]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await Promise.all([get(), get()])).toEqual([2, 2]);
  expect(await get()).toBe(2);
});

test('a value that is too old is refreshed', async () => {
  let calls = 0;
  const get = cachedFor(0, async () => ++calls);
  expect([await get(), await get()]).toEqual([1, 2]);
});
