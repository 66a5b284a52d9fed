import { describe, expect, test } from 'vitest';
import {
  createQuietModel,
  type QuietFrame,
  quietsOf,
  silencesOf,
  subscribed,
} from '../testing/quiet-model.ts';

const MICROS = '.000000Z';
/** 10:00 in Tokyo and 09:00 in Hong Kong, on a Friday. */
const IN_SESSION = '2026-11-20T01:00:00Z';
const shape = ({ symbol, reason, over }: QuietFrame) => [symbol, reason, over === true];

describe('the generator', () => {
  test('all are told that it is silent, once, and that it is back', () => {
    const { socket, publish, pass, generator } = subscribed(IN_SESSION, ['0700.HK']);
    expect(generator()).toMatchObject({ state: 'never', age_ms: null, in_session: null });
    pass(3, () => publish(['7203.T']));
    expect(generator()).toMatchObject({ state: 'alive', age_ms: 1_000, in_session: true });
    pass(60);
    expect(generator()).toEqual({
      ...{ state: 'silent', age_ms: 61_000, late_after_ms: 5_000, in_session: true },
      last_received_at: `2026-11-20T01:00:02${MICROS}`,
    });
    publish(['7203.T']);
    pass(1);
    const silent = { type: 'quiet', symbol: '*', reason: 'generator_silent' };
    const since = `2026-11-20T01:00:02${MICROS}`;
    const until = `2026-11-20T01:01:03${MICROS}`;
    expect(silencesOf(socket)).toEqual([
      { ...silent, since, until: null },
      { ...silent, since, until, over: true },
    ]);
  });

  test('test symbols do not show that it lives; while all markets rest its silence is no news', () => {
    const { socket, publish, pass, generator } = subscribed('2026-11-21T02:00:00Z', ['7203.T']);
    publish(['7203.T']);
    pass(60, () => publish(['TEST:A']));
    expect(generator()).toMatchObject({ state: 'silent', age_ms: 60_000, in_session: false });
    expect(silencesOf(socket)).toEqual([]);
  });

  test('is not blamed while the log is away, nor at once when it is back', () => {
    const { socket, publish, pass, hear } = subscribed(IN_SESSION, ['7203.T']);
    pass(3, () => publish(['7203.T']));
    const before = quietsOf(socket).length;
    hear(false);
    pass(60);
    hear(true);
    pass(4);
    expect(quietsOf(socket)).toHaveLength(before);
    expect(silencesOf(socket)).toEqual([]);
    pass(3);
    expect(silencesOf(socket)).toHaveLength(1);
    expect(quietsOf(socket).slice(before).map(shape)).toEqual([
      ['7203.T', 'generator_late', false],
    ]);
    expect(quietsOf(socket).at(-1)!.since).toBe(`2026-11-20T01:00:02${MICROS}`);
  });
});

describe('a subscription to *', () => {
  const TOKYO = Array.from({ length: 3_000 }, (_, n) => `${1_000 + n}.T`);
  const KONG = Array.from({ length: 2_000 }, (_, n) => `${n}.HK`);

  test('is told of thousands in sums of their venue: how many, the first, since when', () => {
    const { socket, publish, pass, passUntil } = subscribed('2026-11-20T02:29:58Z', ['*']);
    pass(2, () => publish([...TOKYO, ...KONG]));
    passUntil('2026-11-20T02:31:00Z');
    expect(quietsOf(socket)).toEqual([
      {
        ...{ type: 'quiet', symbol: '*', venue: 'XTKS', reason: 'lunch_break', count: 3_000 },
        ...{ since: `2026-11-20T02:30:00${MICROS}`, until: `2026-11-20T03:30:00${MICROS}` },
        symbols: TOKYO.slice(0, 20),
      },
      {
        ...{ type: 'quiet', symbol: '*', venue: 'XHKG', reason: 'generator_late', count: 2_000 },
        ...{ since: `2026-11-20T02:29:59${MICROS}`, until: null },
        symbols: KONG.slice(0, 20),
      },
    ]);
    publish(KONG.slice(0, 1_999));
    pass(5);
    expect(quietsOf(socket).at(-1)).toMatchObject({ count: 1, symbols: ['1999.HK'] });
    publish(KONG);
    pass(5);
    const over = { venue: 'XHKG', reason: 'generator_late', over: true, count: 0, symbols: [] };
    expect(quietsOf(socket).at(-1)).toMatchObject(over);
    // Who comes now is told of what is quiet now.
    expect(quietsOf(socket).length).toBeLessThan(10);
  });

  test('who comes later, and who could not be told, has the same sums in the end', () => {
    const model = createQuietModel('2026-11-20T02:29:59Z');
    const deaf = model.connect(400);
    model.send(deaf, { op: 'subscribe', symbols: ['*'], snapshot: false });
    model.publish([...TOKYO.slice(0, 50), ...KONG.slice(0, 50)]);
    model.pass(10);
    const queued = deaf.connection!.outbox.queueBytes;
    model.pass(600, (second) => {
      if (second % 30 === 0) model.publish([KONG[second]!]);
    });
    model.publish(KONG.slice(0, 50));
    model.pass(2);
    // The pills wait for it, no word of what was quiet does.
    expect(quietsOf(deaf)).toEqual([]);
    expect(deaf.connection!.outbox.queueBytes).toBeGreaterThan(queued);
    model.pass(20, () => deaf.read(1e12));
    const late = model.connect();
    model.send(late, { op: 'subscribe', symbols: ['*'], snapshot: false });
    model.settle();
    const now = (frames: readonly QuietFrame[]) =>
      frames.filter(({ over, count }) => over === undefined && count !== undefined);
    expect(now(quietsOf(late)).map(({ venue }) => venue)).toContain('XTKS');
    expect(now(quietsOf(deaf))).toEqual(now(quietsOf(late)));
  });
});
