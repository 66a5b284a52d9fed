import { describe, expect, test } from 'vitest';
import { createModel } from '../testing/model.ts';
import { framesOf } from '../testing/stream-client.ts';

const UNHURRIED = { framesInBurst: 1_000_000 };

describe('the bounds of a connection', () => {
  test('more invalid frames than the bound end in 4505', () => {
    const model = createModel(UNHURRIED);
    const socket = model.connect(1_000_000);
    for (let n = 0; n < 21; n += 1) socket.connection!.receive(Buffer.from('x'), false);
    expect(socket.closed).toEqual({ code: 4505, reason: 'protocol_error' });
    socket.connection!.receive(Buffer.from('x'), false);
    socket.connection!.sendHeartbeat();
    socket.connection!.closed();
  });

  test('more symbols than the bound are rejected one by one', () => {
    const model = createModel({ symbolsPerConnectionMax: 2 });
    const socket = model.connect(1_000_000);
    const frame = { op: 'subscribe', symbols: ['A', 'B', 'C'] };
    socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
    expect(socket.frames.find(({ type }) => type === 'subscribed')).toMatchObject({
      accepted: ['A', 'B'],
      rejected: [{ symbol: 'C', code: 'symbol_limit' }],
    });
  });

  test('a long snapshot spans frames below the bound, and pills follow it', () => {
    const model = createModel({ frameOutBytesMax: 2_000 });
    const symbols = Array.from({ length: 500 }, (_, n) => `L${n}A`);
    model.publish(symbols.map((symbol) => ({ symbol })));
    model.pass(0);
    const socket = model.connect(1_000_000);
    const frame = { op: 'subscribe', id: '1', symbols: ['*'] };
    socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
    model.publish([{ symbol: 'L0A' }]);
    model.pass(1_000);
    const snapshots = framesOf(socket.frames, 'snapshot');
    expect(snapshots.length).toBeGreaterThan(50);
    expect(Math.max(...socket.sizes)).toBeLessThanOrEqual(2_000);
    expect(snapshots.map(({ last }) => last).filter(Boolean)).toEqual([true]);
    expect(snapshots.at(-1)!.last).toBe(true);
    expect(snapshots.flatMap(({ pills }) => pills)).toHaveLength(500);
    expect(socket.frames.slice(-2).map(({ type }) => type)).toEqual(['live', 'pill']);
  });
});
