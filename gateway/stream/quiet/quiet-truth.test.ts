import { expect, test } from 'vitest';
import { createCadences, lateAfterMs } from '../../../domain/market/cadence/cadence.ts';
import { judgeSilence } from '../../../domain/market/quiet/silence.ts';
import { seededRandom, testSeed } from '../../../testing/seed.ts';
import { createQuietModel, type QuietFrame, quietsOf } from '../testing/quiet-model.ts';
import { pillsOf } from '../testing/stream-client.ts';

test('after any sequence of pills a client knows the current states, and gets no state twice', () => {
  const next = seededRandom();
  const random = (below: number) => Math.floor(next() * below);
  const symbols = ['7203.T', '6758.T', '0700.HK', '0005.HK', 'USD/JPY', 'TEST:A', 'AAPL', 'BHP.AX'];
  // Through the morning, lunch and the closes of three venues; at random through a weekend.
  const model = createQuietModel(['2026-11-20T02:20:00Z', '2026-11-20T21:50:00Z'][random(2)]!);
  const lastAt = new Map<string, number>();
  const paces = new Map(symbols.map((symbol) => [symbol, 1 + random(20)]));
  const sockets = Array.from({ length: 3 }, (_, n) => model.connect(n === 0 ? 3_000 : 1e12));
  for (const socket of sockets) {
    model.send(socket, { op: 'subscribe', symbols, snapshot: false });
  }
  const cadences = createCadences(100);
  let isBlocked = false;
  const read = () => {
    for (let n = 0; n < 1_000 && !sockets[0]!.connection!.outbox.isFlowing; n += 1) {
      sockets[0]!.read(1e12);
    }
  };
  model.pass(3_000, () => {
    for (const [symbol, pace] of paces) {
      if (random(200) === 0) paces.set(symbol, [1, 5, 20, 1e9][random(4)]!);
      if (random(pace) > 0) continue;
      lastAt.set(symbol, model.nowMs());
      cadences.note(symbol, model.nowMs() * 1000);
      model.publish([symbol]);
    }
    if (random(60) === 0) isBlocked = !isBlocked;
    if (!isBlocked) read();
  });
  // The first socket is read until the end: it could be blocked again by the frames of these seconds.
  read();
  model.pass(3, read);
  read();
  expect(sockets.map(({ closed }) => closed)).toEqual([undefined, undefined, undefined]);
  for (const socket of sockets) {
    const states = new Map<string, QuietFrame>();
    for (const frame of quietsOf(socket)) {
      const before = states.get(frame.symbol);
      // The blocked socket may miss the end of a period between two equal states.
      if (socket !== sockets[0]) expect(frame, `TEST_SEED=${testSeed}`).not.toEqual(before);
      states.set(frame.symbol, frame);
    }
    for (const symbol of symbols) {
      const judge = (nowMs: number) =>
        judgeSilence({
          lastAtMs: lastAt.get(symbol),
          lateAfterMs: lateAfterMs(cadences.medianMs(symbol)),
          market: model.markets.of(symbol, nowMs),
          receivingSinceMs: undefined,
          nowMs,
        }).quiet?.reason;
      const label = `${symbol} TEST_SEED=${testSeed}`;
      const last = states.get(symbol);
      const isQuiet = last !== undefined && last.over === undefined;
      // A symbol whose cadence has just become faster is checked within 5 s.
      const reasons = [judge(model.nowMs() - 5_000), judge(model.nowMs())];
      if (reasons[0] !== undefined) {
        expect(isQuiet, label).toBe(true);
        expect(reasons, label).toContain(last!.reason);
      } else if (isQuiet) {
        // Reported before its market opened, or just now; in any case after its last pill.
        const pill = socket.frames.findLastIndex((frame) =>
          pillsOf(frame).some((one) => one.symbol === symbol),
        );
        expect(socket.frames.indexOf(last), label).toBeGreaterThan(pill);
      }
    }
  }
});
