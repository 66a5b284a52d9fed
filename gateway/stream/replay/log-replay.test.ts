// The replay buffer has evicted the pills that clients resume for, and has no room: the log has them.
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PositionLostError } from '../../../lib/kafka/topics.ts';
import type { LIMITS } from '../limits.ts';
import { createModel, type FakeSocket, type Model } from '../testing/model.ts';
import { framesOf, pillsOf } from '../testing/stream-client.ts';
import type { ResumerDeps } from './resume.ts';

type Limits = Partial<Record<keyof typeof LIMITS, number>>;

/** A model over a log that is read a few records per turn. */
function createLogged(limits: Limits = {}, perTurn = 1_000): Model {
  const readSpans: ResumerDeps['readSpans'] = async (spans, onPill, signal) => {
    let done = 0;
    for (let at = 0; at < model.log.length; at += 1) {
      const pill = model.log[at]!;
      const span = spans.get(pill.partition);
      if (span !== undefined && pill.offset >= span.from && pill.offset < span.until) {
        onPill(pill);
      }
      done += 1;
      if (done % perTurn === 0) await nextTurn();
      signal.throwIfAborted();
    }
  };
  const model: Model = createModel({ replayBufferPillsMax: 6, ...limits }, undefined, readSpans);
  return model;
}

function subscribe(
  model: Model,
  fields: object,
  windowBytes = 1e9,
  accountId = 'acc_1',
): FakeSocket {
  const socket = model.connect(windowBytes);
  socket.connection!.principal = { ...socket.connection!.principal, accountId };
  const frame = { op: 'subscribe', snapshot: false, ...fields };
  socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
  return socket;
}

async function answer(socket: FakeSocket) {
  for (let n = 0; n < 500; n += 1) {
    const [subscribed] = framesOf(socket.frames, 'subscribed');
    if (subscribed !== undefined) return subscribed;
    await nextTurn();
  }
  return expect.fail('no answer');
}

const fill = (model: Model, symbol: string, count: number) =>
  model.publish(Array.from({ length: count }, () => ({ symbol })));

describe('a resume from before the replay buffer', () => {
  test('gets exactly the pills after the position, while new pills arrive and others are evicted', async () => {
    const symbols = fc.constantFrom('AA', 'AB', 'AC', 'TEST:D');
    const symbolsOf = fc.oneof(
      fc.uniqueArray(symbols, { minLength: 1, maxLength: 3 }),
      fc.constant<string[]>(['*']),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(symbols, { maxLength: 30, size: 'max' }),
        fc.array(symbols, { minLength: 8, maxLength: 60, size: 'max' }),
        fc.array(symbols, { maxLength: 12, size: 'max' }),
        fc.array(symbolsOf, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 9 }),
        async (before, missed, live, requests, perTurn) => {
          const model = createLogged({}, perTurn);
          model.publish(before.map((symbol) => ({ symbol })));
          const resume = model.latestPills.position();
          model.publish(missed.map((symbol) => ({ symbol })));
          const sockets = requests.map((one) => subscribe(model, { symbols: one, resume }));
          for (const symbol of live) {
            model.publish([{ symbol }]);
            await nextTurn();
          }
          const subscribed = await Promise.all(sockets.map(answer));
          model.pass(1_000);
          for (const [at, socket] of sockets.entries()) {
            expect(subscribed[at]).toMatchObject({ recovered: true, reason: null });
            const got = socket.frames.flatMap(pillsOf);
            const named = new Set(requests[at]!);
            const matching = model.log
              .slice(before.length)
              .filter(({ symbol }) =>
                named.has('*') ? !symbol.startsWith('TEST:') : named.has(symbol),
              );
            for (const partition of [0, 1]) {
              const own = got
                .map(({ cursor }) => cursor.split('-').map(Number))
                .filter(([p]) => p === partition)
                .map(([, offset]) => offset);
              const all = matching.filter((pill) => pill.partition === partition);
              expect(own).toEqual(all.map(({ offset }) => offset));
            }
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  test('is refused alone, with the reason, if it exceeds the bound of one replay', async () => {
    const model = createLogged({ replayPillsMax: 20 });
    fill(model, 'AA', 30);
    fill(model, 'AC', 10);
    const greedy = subscribe(model, { symbols: ['*'], resume: 'e1:' });
    const modest = subscribe(model, { symbols: ['AC'], resume: 'e1:' });
    expect(await answer(greedy)).toMatchObject({ recovered: false, reason: 'too_many_missed' });
    expect(await answer(modest)).toMatchObject({ recovered: true, replaying: 10 });
  });

  test('is refused at once if it would read too much of the log', async () => {
    const model = createLogged({ replayRecordsMax: 20 });
    fill(model, 'AA', 40);
    fill(model, 'AC', 1);
    const socket = subscribe(model, { symbols: ['AC'], resume: 'e1:' });
    expect(await answer(socket)).toMatchObject({ recovered: false, reason: 'too_many_missed' });
    const near = subscribe(model, { symbols: ['AC'], resume: 'e1:1-20' });
    expect(await answer(near)).toMatchObject({ recovered: true, replaying: 1 });
  });

  test('shares a bound on pills with all replays that are not sent yet', async () => {
    const model = createLogged({ logReplayPillsMax: 50, frameOutBytesMax: 400 });
    fill(model, 'AA', 40);
    fill(model, 'AC', 20);
    const asks = (symbol: string, windowBytes?: number) =>
      subscribe(model, { symbols: symbol.split(' '), resume: 'e1:' }, windowBytes);
    // Both share a reading of 60 pills: the larger request is refused, the other is not.
    const [big, small] = [asks('AA AC'), asks('AC')];
    expect(await answer(big)).toMatchObject({ recovered: false, reason: 'replay_busy' });
    expect(await answer(small)).toMatchObject({ recovered: true, replaying: 20 });
    model.pass(1_000);
    await nextTurn();

    for (const end of ['reads', 'goes'] as const) {
      // The first two frames of the replay are sent; the other frames wait.
      const slow = asks('AA', 1_000);
      expect(await answer(slow)).toMatchObject({ recovered: true, replaying: 40 });
      expect(await answer(asks('AC'))).toMatchObject({ reason: 'replay_busy' });
      if (end === 'goes') slow.connection!.closed();
      for (let n = 0; n < 100 && end === 'reads'; n += 1) {
        model.pass(1_000);
        slow.read(1e6);
      }
      const next = asks('AC');
      expect(await answer(next), end).toMatchObject({ recovered: true, replaying: 20 });
      model.pass(1_000);
      await nextTurn();
    }
  });
});

test('a thousand resumes of one account get all or nothing, one per turn', async () => {
  const model = createLogged({ logReplayPillsMax: 50, frameOutBytesMax: 400 });
  fill(model, 'AA', 40);
  fill(model, 'AC', 20);
  const resumeThousand = () => {
    const sockets = Array.from({ length: 1_000 }, () =>
      subscribe(model, { symbols: ['*'], resume: 'e1:1-9' }),
    );
    return async () => {
      let answered = 0;
      for (let n = 0; n < 3_000 && answered < sockets.length; n += 1) {
        await nextTurn();
        const now = sockets.filter(({ frames }) => frames.length > 1); // after `welcome`
        expect(now.length - answered).toBeLessThanOrEqual(1);
        answered = now.length;
      }
      return sockets.map(({ frames }) => framesOf(frames, 'subscribed')[0]);
    };
  };
  // The first two frames of the replay are sent; the other frames wait and take up the room.
  const slow = subscribe(model, { symbols: ['AC'], resume: 'e1:' }, 1_000);
  expect(await answer(slow)).toMatchObject({ recovered: true, replaying: 20 });
  for (const subscribed of await resumeThousand()())
    expect(subscribed).toMatchObject({ reason: 'replay_busy' });
  slow.connection!.closed();
  for (const subscribed of await resumeThousand()()) {
    expect(subscribed).toMatchObject({ recovered: true, replaying: 50 });
  }
});

describe('a span that cannot be read', () => {
  test('is position_expired if the log deletes it while it is read', async () => {
    const lost = () => Promise.reject(new PositionLostError('offset 0 is outside 5 … 9.'));
    const model = createModel({ replayBufferPillsMax: 6 }, undefined, lost);
    fill(model, 'AA', 20);
    const socket = subscribe(model, { symbols: ['AA'], resume: 'e1:' });
    expect(await answer(socket)).toMatchObject({ recovered: false, reason: 'position_expired' });
    expect(framesOf(socket.frames, 'gap')).toMatchObject([{ reason: 'position_expired' }]);
  });

  test('is log_unavailable if the log does not answer', async () => {
    const away = () => Promise.reject(new Error('no broker'));
    const model = createModel({ replayBufferPillsMax: 6 }, undefined, away);
    fill(model, 'AA', 20);
    const socket = subscribe(model, { symbols: ['AA'], resume: 'e1:' });
    expect(await answer(socket)).toMatchObject({ recovered: false, reason: 'log_unavailable' });
  });
});

test('one account cannot take all the slots of waiting resumes', async () => {
  const model = createLogged({
    ...{ replaysWaitingMax: 10, replaysWaitingPerAccountMax: 4, replayWaitMs: 1 },
  });
  fill(model, 'AA', 20);
  const ahead = () => subscribe(model, { symbols: ['AA'], resume: 'e1:1-99' }, 1e9, 'acc_greedy');
  const greedy = Array.from({ length: 12 }, ahead);
  const other = subscribe(model, { symbols: ['AA'], resume: 'e1:' }, 1e9, 'acc_other');
  // Resumes over the bound are answered at once.
  const reasons = greedy.map(({ frames }) => framesOf(frames, 'subscribed')[0]?.reason);
  expect(reasons.filter((reason) => reason === 'replay_busy')).toHaveLength(8);
  expect(reasons.filter((reason) => reason === undefined)).toHaveLength(4);
  expect(await answer(other)).toMatchObject({ recovered: true, replaying: 20 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  for (const socket of greedy.slice(0, 4)) {
    expect((await answer(socket)).reason).toBe('position_ahead');
  }
  const again = ahead();
  expect(framesOf(again.frames, 'subscribed')).toEqual([]);
});
