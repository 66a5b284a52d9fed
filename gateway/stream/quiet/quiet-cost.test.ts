import { describe, expect, test } from 'vitest';
import { LIMITS } from '../limits.ts';
import { createQuietModel, type QuietFrame, quietsOf } from '../testing/quiet-model.ts';

/** 10:00 in Tokyo and 09:00 in Hong Kong, on a Friday. */
const IN_SESSION = '2026-11-20T01:00:00Z';
const shape = ({ symbol, reason, over }: QuietFrame) => [symbol, reason, over === true];

describe('the cost', () => {
  test('a turn sends a bounded number of frames, whatever the subscriptions', () => {
    const symbols = Array.from({ length: 900 }, (_, n) => `${1_000 + n}.T`);
    const model = createQuietModel('2026-11-20T02:29:59Z');
    const sockets = Array.from({ length: 10 }, () => model.connect());
    for (const socket of sockets) {
      model.send(socket, { op: 'subscribe', symbols, snapshot: false });
    }
    const sent = () => sockets.reduce((sum, socket) => sum + quietsOf(socket).length, 0);
    let before = sent();
    const bounded = () => {
      let turns = 0;
      for (; model.turns.length > 0; turns += 1) {
        model.turns.shift()!();
        const after = sent();
        expect(after - before).toBeLessThanOrEqual(LIMITS.quietFramesPerTurn);
        before = after;
      }
      return turns;
    };
    expect(bounded()).toBeGreaterThanOrEqual(9_000 / LIMITS.quietFramesPerTurn);
    model.publish(symbols);
    model.model.pass(7_000);
    model.quiet.tick();
    bounded();
    for (const socket of sockets) {
      const last = new Map(quietsOf(socket).map((frame) => [frame.symbol, frame.reason]));
      expect(new Set(last.values())).toEqual(new Set(['lunch_break']));
      expect(last.size).toBe(900);
    }
  });

  test('a frame is built once for all its recipients', () => {
    const model = createQuietModel(IN_SESSION);
    const given = new Set<Uint8Array>();
    const sockets = Array.from({ length: 50 }, () => model.connect());
    for (const socket of sockets) {
      model.send(socket, { op: 'subscribe', symbols: ['7203.T'], snapshot: false });
    }
    model.publish(['7203.T']);
    model.pass(2);
    for (const socket of sockets) {
      const send = socket.send.bind(socket);
      socket.send = (bytes) => {
        given.add(bytes);
        return send(bytes);
      };
    }
    model.publish(['6758.T']);
    model.pass(4);
    const late = sockets
      .flatMap((socket) => quietsOf(socket))
      .filter(({ reason }) => reason === 'generator_late');
    expect(late).toHaveLength(50);
    expect(given.size).toBe(1);
  });

  test('a blocked socket gets the newest state of each symbol later, and none is in its queue', () => {
    const model = createQuietModel(IN_SESSION);
    const socket = model.connect(600);
    model.send(socket, { op: 'subscribe', symbols: ['7203.T', '6758.T'], snapshot: false });
    model.publish(['7203.T', '6758.T']);
    model.pass(120, (second) => {
      if (second % 10 === 0) model.publish(['6758.T']);
    });
    expect(quietsOf(socket)).toEqual([]);
    model.pass(20, () => socket.read(1e12));
    // The other symbol was late, too, for a while.
    expect(quietsOf(socket).map(shape)).toEqual([['7203.T', 'generator_late', false]]);
  });
});
