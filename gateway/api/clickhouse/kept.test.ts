import { expect, test } from 'vitest';
import { kept } from './kept.ts';

test('asked once for all who want to know; what fails is asked anew', async () => {
  let asked = 0;
  const ask = kept(60_000, async () => {
    asked += 1;
    if (asked === 1) throw new Error('away');
    return asked;
  });
  const both = await Promise.allSettled([ask(), ask()]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await Promise.all([ask(), ask()])).toEqual([2, 2]);
  expect(await ask()).toBe(2);
});

test('too old: asked again', async () => {
  let asked = 0;
  const ask = kept(0, async () => ++asked);
  expect([await ask(), await ask()]).toEqual([1, 2]);
});
