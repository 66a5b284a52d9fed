import { expect, test } from 'vitest';
import { createTurns, type TurnBounds } from './turns.ts';

const BOUNDS: TurnBounds = {
  activeMax: 3,
  activeOfAccountMax: 2,
  waitingMax: 2,
  waitingOfAccountMax: 2,
  waitingMs: 20_000,
};

test('one account does not take all turns, and a free turn is passed on', async () => {
  const { begin: enter } = createTurns(BOUNDS);
  const [first, second] = await Promise.all([enter('a'), enter('a')]);
  let begun = '';
  const third = enter('a').then((leave) => {
    begun += 'a';
    return leave;
  });
  const other = await enter('b');
  expect(other).toBeDefined();
  expect(begun).toBe('');
  first!();
  (await third)!();
  expect(begun).toBe('a');
  for (const leave of [first, second, other]) leave!(); // A turn ends only once.
  const all = await Promise.all([enter('c'), enter('d'), enter('e')]);
  expect(all.every((leave) => leave !== undefined)).toBe(true);
});

test('a full queue and an exceeded wait give no turn', async () => {
  const { begin: enter } = createTurns({ ...BOUNDS, waitingMs: 10 });
  await Promise.all([enter('a'), enter('b'), enter('c')]);
  const waiting = [enter('d'), enter('e')];
  expect(await enter('f')).toBeUndefined();
  expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
});

test('the callers of one account fill only their share of the queue, and can be refused', async () => {
  const turns = createTurns({ ...BOUNDS, activeOfAccountMax: 1, waitingMax: 3 });
  const leave = await turns.begin('a');
  const waiting = [turns.begin('a'), turns.begin('a')];
  expect(await turns.begin('a')).toBeUndefined();
  await Promise.all([turns.begin('b'), turns.begin('c')]);
  const other = turns.begin('b');
  turns.refuseWaiting('a');
  expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
  leave!();
  const next = await turns.begin('a');
  expect(next).toBeDefined();
  next!();
  turns.refuseWaiting('b');
  expect(await other).toBeUndefined();
});
