import { describe, expect, it } from 'vitest';
import { figuresBetween, quantile } from './figures.ts';
import type { Counts, Sample } from './sample.ts';
import { statusLine, statusPanel } from './text.ts';

const NOTHING: Sample = { atMs: 0, counts: new Map(), lag: {}, sockets: 0, unreachable: [] };

function counts(some: Partial<Counts>): Counts {
  return { received: 0, acknowledged: 0, deliveries: 0, receiveToSend: new Map(), ...some };
}

describe('quantile', () => {
  it.each<[string, [number, number][], number, number | undefined]>([
    ['no bucket', [], 0.5, undefined],
    ['only zeros', [[1, 0]], 0.5, undefined],
    ['the middle of the only bucket', [[2, 10]], 0.5, 1],
    [
      'linear within a bucket',
      [
        [1, 50],
        [2, 100],
      ],
      0.75,
      1.5,
    ],
    [
      'empty buckets between',
      [
        [1, 50],
        [2, 50],
        [3, 100],
      ],
      0.99,
      2.98,
    ],
    [
      'beyond the last bound: that bound',
      [
        [1, 1],
        [Number.POSITIVE_INFINITY, 100],
      ],
      0.99,
      1,
    ],
  ])('%s', (_, counts, share, expected) => {
    const found = quantile(new Map(counts), share);
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toBeCloseTo(expected, 10);
  });
});

describe('figures', () => {
  const before: Sample = {
    ...NOTHING,
    counts: new Map([
      ['ingest', counts({ received: 100, acknowledged: 90 })],
      ['stream', counts({ deliveries: 1_000 })],
    ]),
  };
  const receiveToSend = new Map([
    [0.001, 50],
    [0.002, 100],
    [Number.POSITIVE_INFINITY, 100],
  ]);
  const now: Sample = {
    atMs: 2_000,
    sockets: 3,
    lag: { stream: 4, analytics: 0 },
    unreachable: ['latest'],
    counts: new Map([
      ['ingest', counts({ received: 300, acknowledged: 290 })],
      ['stream', counts({ deliveries: 3_000, receiveToSend })],
    ]),
  };

  it('are rates between two samples', () => {
    expect(figuresBetween(before, now)).toMatchObject({
      receivedPerS: 100,
      acknowledgedPerS: 100,
      deliveriesPerS: 1_000,
      receiveToSendMs: { p50: 1, p99: 1.98 },
    });
  });

  it('are never negative: a restarted process counts from 0', () => {
    const restarted = new Map([...now.counts.keys()].map((name) => [name, counts({})]));
    expect(figuresBetween(now, { ...NOTHING, atMs: 3_000, counts: restarted })).toMatchObject({
      receivedPerS: 0,
      deliveriesPerS: 0,
      receiveToSendMs: undefined,
    });
  });

  it('ignore what a process counted while it was unreachable', () => {
    const outage: Sample = {
      ...now,
      atMs: 4_000,
      unreachable: ['stream'],
      counts: new Map([['ingest', counts({ received: 500, acknowledged: 490 })]]),
    };
    const again: Sample = {
      ...now,
      atMs: 6_000,
      counts: new Map([
        ['ingest', counts({ received: 600, acknowledged: 590 })],
        ['stream', counts({ deliveries: 9_000, receiveToSend })],
      ]),
    };
    const stream = { deliveriesPerS: 0, receiveToSendMs: undefined };
    expect(figuresBetween(now, outage)).toMatchObject({ ...stream, receivedPerS: 100 });
    expect(figuresBetween(outage, again)).toMatchObject({ ...stream, receivedPerS: 50 });
    expect(figuresBetween(again, { ...again, atMs: 7_000 }).deliveriesPerS).toBe(0);
  });

  it('fit in one line', () => {
    expect(statusLine(figuresBetween(before, now))).toBe(
      'pills 100/s in, 100/s acknowledged; lag analytics 0, stream 4; sockets 3 (1000 pills/s); ' +
        'receive to socket p50 1.0 ms, p99 2.0 ms; no answer from latest',
    );
    expect(statusLine(figuresBetween(NOTHING, { ...NOTHING, atMs: 1_000 }))).toBe(
      'pills 0.0/s in, 0.0/s acknowledged; lag unknown; sockets 0 (0.0 pills/s); ' +
        'receive to socket no pill sent',
    );
  });

  it('fill a panel, with warnings and the last events', () => {
    const panel = statusPanel(figuresBetween(before, now), ['one', 'two'], (_, text) => text);
    expect(panel.split('\n')).toEqual([
      '  pills             100/s in, 100/s acknowledged',
      '  waiting records   analytics 0, stream 4',
      '  sockets           3, 1000 pills/s sent',
      '  receive to socket p50 1.0 ms, p99 2.0 ms',
      '                    no answer from latest',
      '  last events       one',
      '                    two',
    ]);
  });
});
