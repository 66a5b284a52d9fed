import { expect, test } from 'vitest';
import { shareLookups } from './session-cookie.ts';

/** Look-ups that the test answers. */
function lookups() {
  const begun: { key: string; answer: (value: string) => void; fail: () => void }[] = [];
  const find = shareLookups(
    (key) =>
      new Promise<string>((resolve, reject) => {
        begun.push({ key, answer: resolve, fail: () => reject(new Error('away')) });
      }),
  );
  return { begun, find };
}

test('400 requests of a session make two look-ups, one after another; others do not wait', async () => {
  const { begun, find } = lookups();
  const first = find('a');
  const rest = Promise.all(Array.from({ length: 399 }, () => find('a')));
  const other = find('b');
  expect(begun.map(({ key }) => key)).toEqual(['a', 'b']);
  begun[1]!.answer('b 1');
  expect(await other).toBe('b 1');
  begun[0]!.answer('a 1');
  expect(await first).toBe('a 1');
  await expect.poll(() => begun.length, { timeout: 60_000 }).toBe(3);
  // The session ended after the first look-up began: no later request gets its result.
  begun[2]!.answer('a 2');
  expect(new Set(await rest)).toEqual(new Set(['a 2']));
  const later = find('a');
  expect(begun).toHaveLength(4);
  begun[3]!.answer('a 3');
  expect(await later).toBe('a 3');
});

test('a look-up that fails ends those that wait for the next one, and then all is as before', async () => {
  const { begun, find } = lookups();
  const ends = Promise.allSettled([find('a'), find('a'), find('a')]);
  begun[0]!.fail();
  expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  const again = find('a');
  expect(begun).toHaveLength(2);
  begun[1]!.answer('a');
  expect(await again).toBe('a');
});
