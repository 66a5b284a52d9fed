import { expect, test } from 'vitest';
import { createTurnstile } from './turnstile.ts';

const BOUNDS = { readingMax: 3, readingOfAccountMax: 2, waitingMax: 2, waitingMs: 20_000 };

test('one account does not take all places, and a place that is free is given on', async () => {
  const { enter } = createTurnstile(BOUNDS);
  const [first, second] = await Promise.all([enter('a'), enter('a')]);
  let entered = '';
  const third = enter('a').then((leave) => {
    entered += 'a';
    return leave;
  });
  const other = await enter('b');
  expect(other).toBeDefined();
  expect(entered).toBe('');
  first!();
  (await third)!();
  expect(entered).toBe('a');
  for (const leave of [first, second, other]) leave!(); // leaving twice counts once
  const all = await Promise.all([enter('c'), enter('d'), enter('e')]);
  expect(all.every((leave) => leave !== undefined)).toBe(true);
});

test('beyond the line, and after the wait, there is no room', async () => {
  const { enter } = createTurnstile({ ...BOUNDS, waitingMs: 10 });
  await Promise.all([enter('a'), enter('b'), enter('c')]);
  const waiting = [enter('d'), enter('e')];
  expect(await enter('f')).toBeUndefined();
  expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
});
