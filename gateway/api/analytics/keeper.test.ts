import { expect, test } from 'vitest';
import { createTurnstile, type TurnstileBounds } from '../turnstile.ts';
import { createKeeper, type Kept } from './keeper.ts';

const BOUNDS: TurnstileBounds = {
  ...{ readingMax: 8, readingOfAccountMax: 2, waitingMax: 8, waitingMs: 50 },
};
const TABLE = { columns: [], rows: [] };

const keptOf = (text: string): Kept => ({ json: Buffer.from(text), etag: text, table: TABLE });

/** An answer that comes when it is let. */
function answering(text: string, keepMs = 60_000) {
  let come: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((resolve, reject) => {
    [come, fail] = [resolve, reject];
  });
  let asked = 0;
  const answer = async () => {
    asked += 1;
    await promise;
    return { kept: keptOf(text), keepMs };
  };
  return { answer, asked: () => asked, come, fail };
}

test('an answer under way is not lost where others fill what is kept', async () => {
  const keep = createKeeper(createTurnstile(BOUNDS), 20);
  const slow = answering('slow');
  const waiting = keep('slow', 'a', slow.answer);
  for (const key of ['one', 'two', 'three']) {
    const quick = answering(key);
    quick.come();
    expect((await keep(key, 'b', quick.answer))?.etag).toBe(key);
  }
  slow.come();
  expect((await waiting)?.etag).toBe('slow');
});

test('equal questions are worked on once; then the answer is kept for its time', async () => {
  const keep = createKeeper(createTurnstile(BOUNDS));
  const one = answering('one');
  // More than there are turns.
  const asking = Array.from({ length: 40 }, (_, at) => keep('k', `account ${at % 20}`, one.answer));
  one.come();
  expect(new Set((await Promise.all(asking)).map((kept) => kept?.etag))).toEqual(new Set(['one']));
  expect((await keep('k', 'a', one.answer))?.etag).toBe('one');
  expect(one.asked()).toBe(1);
});

test('an account without room holds up none that has room', async () => {
  const keep = createKeeper(createTurnstile(BOUNDS));
  const held = [answering('x'), answering('y')];
  const busy = held.map(({ answer }, at) => keep(`held ${at}`, 'full', answer));
  const one = answering('one');
  one.come();
  const ofFull = keep('k', 'full', one.answer);
  const ofOther = keep('k', 'other', one.answer);
  // The other's turn serves both.
  expect((await ofOther)?.etag).toBe('one');
  expect((await ofFull)?.etag).toBe('one');
  expect(one.asked()).toBe(1);
  // Alone it waits in vain, and nothing of it stays behind.
  const two = answering('two');
  two.come();
  expect(await keep('other k', 'full', two.answer)).toBeUndefined();
  expect((await keep('other k', 'other', two.answer))?.etag).toBe('two');
  for (const { come } of held) come();
  await Promise.all(busy);
});

test('a turn that comes too late is given back', async () => {
  const keep = createKeeper(
    createTurnstile({ ...BOUNDS, readingOfAccountMax: 1, waitingMs: 60_000 }),
  );
  const held = answering('held');
  const busy = keep('held', 'full', held.answer);
  const one = answering('one');
  const both = [keep('k', 'full', one.answer), keep('k', 'other', one.answer)];
  one.come();
  await Promise.all(both);
  held.come();
  await busy;
  const next = answering('next');
  next.come();
  expect((await keep('next', 'full', next.answer))?.etag).toBe('next');
});

test('what fails fails for all who wait, and is asked anew', async () => {
  const keep = createKeeper(createTurnstile(BOUNDS));
  const one = answering('one');
  const asking = ['a', 'b'].map((account) => keep('k', account, one.answer));
  one.fail(new Error('away'));
  const outcomes = await Promise.allSettled(asking);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const again = answering('again');
  again.come();
  expect((await keep('k', 'a', again.answer))?.etag).toBe('again');
});
