import { expect, test } from 'vitest';
import { createTurns, type TurnBounds } from '../../../lib/rate/turns.ts';
import { type CachedAnswer, createAnswerCache } from './answer-cache.ts';

const BOUNDS: TurnBounds = {
  activeMax: 8,
  activeOfAccountMax: 2,
  waitingMax: 8,
  waitingOfAccountMax: 8,
  waitingMs: 50,
};
const TABLE = { columns: [], rows: [] };

const answerOf = (text: string): CachedAnswer => ({
  body: Buffer.from(text),
  ...{ position: 'e:', next: null },
  etag: text,
  table: TABLE,
});

/** A computation that the test ends. */
function computing(text: string, ttlMs = 60_000) {
  let finish: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((resolve, reject) => {
    [finish, fail] = [resolve, reject];
  });
  let calls = 0;
  const compute = async () => {
    calls += 1;
    await promise;
    return { answer: answerOf(text), ttlMs };
  };
  return { compute, calls: () => calls, finish, fail };
}

test('a pending answer is not lost when others fill the cache', async () => {
  const answers = createAnswerCache(createTurns(BOUNDS), 20);
  const slow = computing('slow');
  const waiting = answers('slow', 'a', slow.compute);
  for (const key of ['one', 'two', 'three']) {
    const quick = computing(key);
    quick.finish();
    expect((await answers(key, 'b', quick.compute))?.etag).toBe(key);
  }
  slow.finish();
  expect((await waiting)?.etag).toBe('slow');
});

test('equal requests are computed once; the answer is then cached for its time to live', async () => {
  const answers = createAnswerCache(createTurns(BOUNDS));
  const one = computing('one');
  // More requests than turns.
  const requests = Array.from({ length: 40 }, (_, at) =>
    answers('k', `account ${at % 20}`, one.compute),
  );
  one.finish();
  expect(new Set((await Promise.all(requests)).map((answer) => answer?.etag))).toEqual(
    new Set(['one']),
  );
  expect((await answers('k', 'a', one.compute))?.etag).toBe('one');
  expect(one.calls()).toBe(1);
});

test('an account without a free turn delays no account that has one', async () => {
  const answers = createAnswerCache(createTurns(BOUNDS));
  const held = [computing('x'), computing('y')];
  const busy = held.map(({ compute }, at) => answers(`held ${at}`, 'full', compute));
  const one = computing('one');
  one.finish();
  const ofFull = answers('k', 'full', one.compute);
  const ofOther = answers('k', 'other', one.compute);
  // The other account's turn serves both.
  expect((await ofOther)?.etag).toBe('one');
  expect((await ofFull)?.etag).toBe('one');
  expect(one.calls()).toBe(1);
  // Alone, it gets no turn in time and leaves no pending answer behind.
  const two = computing('two');
  two.finish();
  expect(await answers('other k', 'full', two.compute)).toBeUndefined();
  expect((await answers('other k', 'other', two.compute))?.etag).toBe('two');
  for (const { finish } of held) finish();
  await Promise.all(busy);
});

test('a turn that comes too late is given back', async () => {
  const answers = createAnswerCache(
    createTurns({ ...BOUNDS, activeOfAccountMax: 1, waitingMs: 60_000 }),
  );
  const held = computing('held');
  const busy = answers('held', 'full', held.compute);
  const one = computing('one');
  const both = [answers('k', 'full', one.compute), answers('k', 'other', one.compute)];
  one.finish();
  await Promise.all(both);
  held.finish();
  await busy;
  const next = computing('next');
  next.finish();
  expect((await answers('next', 'full', next.compute))?.etag).toBe('next');
});

test('a failure reaches all who wait and is not cached', async () => {
  const answers = createAnswerCache(createTurns(BOUNDS));
  const one = computing('one');
  const requests = ['a', 'b'].map((account) => answers('k', account, one.compute));
  one.fail(new Error('unavailable'));
  const outcomes = await Promise.allSettled(requests);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const again = computing('again');
  again.finish();
  expect((await answers('k', 'a', again.compute))?.etag).toBe('again');
});
