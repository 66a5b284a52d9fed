import { describe, expect, test } from 'vitest';
import { createModel } from '../testing/model.ts';

/** Subscribers to `*`; `sent` collects the frames of each socket, with their times. */
function crowd(count: number) {
  const model = createModel();
  const sent: { socket: number; bytes: Uint8Array; at: number }[] = [];
  const sockets = Array.from({ length: count }, (_, socket) => {
    const made = model.connect(1e12);
    const send = made.send.bind(made);
    made.send = (bytes) => {
      sent.push({ socket, bytes, at: model.nowMs });
      return send(bytes);
    };
    const frame = { op: 'subscribe', symbols: ['*'], snapshot: false };
    made.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
    return made;
  });
  sent.length = 0;
  return { model, sent, sockets };
}

describe('the hub', () => {
  test('encodes a pill once: all sockets of a group get the same bytes', () => {
    const { model, sent } = crowd(20);
    model.publish([{ symbol: 'AA' }, { symbol: 'AB' }]);
    model.pass(0);
    expect(sent).toHaveLength(20);
    expect(new Set(sent.map(({ bytes }) => bytes)).size).toBe(1);
    const single = [model.connect(1e12), model.connect(1e12)];
    for (const { connection } of single) {
      connection!.receive(Buffer.from('{"op":"subscribe","symbols":["AA","AB"]}'), false);
    }
    sent.length = 0;
    model.publish([{ symbol: 'AA' }]);
    model.pass(0);
    expect(single.map(({ frames }) => frames.at(-1)!.type)).toEqual(['pill', 'pill']);
  });

  test('sends at once under low load', () => {
    const { model, sent } = crowd(10);
    for (let n = 0; n < 1_000; n += 1) {
      model.publish([{ symbol: 'AA' }]);
      model.pass(0);
      expect(sent).toHaveLength((n + 1) * 10);
      model.pass(1);
    }
    expect(model.hub.spacingMs()).toBe(0);
  });

  test.each([
    [100, 5], // 100,000 deliveries a second
    [400, 10], // 400,000
  ])('%i sockets at 1,000 pills/s: ticks are joined, none held over %i ms', (count, heldMsMax) => {
    const { model, sent, sockets } = crowd(count);
    const published: number[] = [];
    for (let n = 0; n < 1_000; n += 1) {
      published.push(model.nowMs);
      model.publish([{ symbol: 'AA' }]);
      model.pass(1);
    }
    // The log is read no more often than this, so pills are not delayed twice.
    expect(model.hub.spacingMs()).toBe(heldMsMax);
    model.pass(20);
    const own = sent.filter(({ socket }) => socket === 0);
    let at = 0;
    for (const { bytes, at: sentAt } of own) {
      const frame = JSON.parse(Buffer.from(bytes).toString());
      for (const _ of frame.type === 'pill' ? [frame] : (frame.pills ?? [])) {
        expect(sentAt - published[at]!).toBeLessThanOrEqual(heldMsMax);
        at += 1;
      }
    }
    expect(at).toBe(1_000);
    expect(own.length).toBeLessThan(600);
    expect(sockets.every(({ closed }) => closed === undefined)).toBe(true);
  });

  test('a closed connection gets no more frames', () => {
    const { model, sockets } = crowd(1);
    const { connection, frames } = sockets[0]!;
    connection!.receive(Buffer.from('{"op":"subscribe","symbols":["AA"]}'), false);
    model.publish([{ symbol: 'AA' }]);
    connection!.closed();
    const before = frames.length;
    model.publish([{ symbol: 'AA' }, { symbol: 'AB' }]);
    model.pass(100);
    expect(frames).toHaveLength(before);
  });
});
