import { describe, expect, test } from 'vitest';
import { createQuietModel, type QuietFrame, quietsOf, subscribed } from '../testing/quiet-model.ts';

const MICROS = '.000000Z';
/** 10:00 in Tokyo and 09:00 in Hong Kong, on a Friday. */
const IN_SESSION = '2026-11-20T01:00:00Z';
const shape = ({ symbol, reason, over }: QuietFrame) => [symbol, reason, over === true];

describe('a named symbol', () => {
  test('is reported as never seen right after live, until its first pill', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T']);
    expect(socket.frames.map(({ type }) => type)).toEqual([
      ...['welcome', 'subscribed', 'live', 'quiet'],
    ]);
    publish(['7203.T']);
    pass(1);
    expect(quietsOf(socket)).toEqual([
      { type: 'quiet', symbol: '7203.T', reason: 'never_seen', since: null, until: null },
      {
        ...{ type: 'quiet', symbol: '7203.T', venue: 'XTKS', reason: 'never_seen', over: true },
        ...{ since: null, until: `2026-11-20T01:00:00${MICROS}` },
      },
    ]);
  });

  test('is late after 5 s without a pill, until the next pill arrives', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T']);
    pass(10, () => publish(['7203.T']));
    expect(quietsOf(socket)).toHaveLength(2);
    pass(3);
    expect(quietsOf(socket)).toHaveLength(2);
    pass(1);
    const late = {
      ...{ type: 'quiet', symbol: '7203.T', venue: 'XTKS', reason: 'generator_late' },
      ...{ since: `2026-11-20T01:00:09${MICROS}`, late_after_ms: 5_000 },
    };
    expect(quietsOf(socket).at(-1)).toEqual({ ...late, until: null });
    pass(600);
    expect(quietsOf(socket)).toHaveLength(3);
    publish(['7203.T']);
    pass(1);
    const until = `2026-11-20T01:10:14${MICROS}`;
    expect(quietsOf(socket).slice(3)).toEqual([{ ...late, until, over: true }]);
  });

  test('is late only after five of its median cadences', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T']);
    pass(300, (second) => {
      if (second % 20 === 0) publish(['7203.T']);
    });
    // The symbol was late after 5 s while its cadence was not known yet.
    const before = quietsOf(socket).length;
    pass(79);
    expect(quietsOf(socket)).toHaveLength(before);
    pass(1);
    expect(quietsOf(socket).at(-1)).toMatchObject({
      ...{ reason: 'generator_late', late_after_ms: 100_000 },
      since: `2026-11-20T01:04:40${MICROS}`,
    });
  });

  test('is judged by its new cadence when it has become faster', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T']);
    publish(['7203.T']);
    pass(60);
    // By its only interval so far, a minute, the symbol would be late after 5 minutes.
    pass(5, () => publish(['7203.T']));
    const before = quietsOf(socket).length;
    pass(9);
    expect(quietsOf(socket).slice(before)).toMatchObject([
      { reason: 'generator_late', late_after_ms: 5_000 },
    ]);
  });

  test('has a lunch break until its end, and is late if no pill follows', () => {
    const { socket, publish, pass, passUntil } = subscribed('2026-11-20T02:29:50Z', ['7203.T']);
    pass(10, () => publish(['7203.T']));
    passUntil('2026-11-20T03:30:04Z');
    expect(quietsOf(socket).slice(2)).toEqual([
      {
        ...{ type: 'quiet', symbol: '7203.T', venue: 'XTKS', reason: 'lunch_break' },
        ...{ since: `2026-11-20T02:30:00${MICROS}`, until: `2026-11-20T03:30:00${MICROS}` },
      },
    ]);
    pass(1);
    expect(quietsOf(socket).slice(3)).toMatchObject([
      { reason: 'generator_late', since: `2026-11-20T03:30:00${MICROS}`, until: null },
    ]);
  });

  test('changes from late to lunch break in the second in which the break begins', () => {
    const { socket, publish, pass, passUntil } = subscribed('2026-11-20T02:29:40Z', ['7203.T']);
    publish(['7203.T']);
    passUntil('2026-11-20T02:29:59Z');
    expect(quietsOf(socket).at(-1)!.reason).toBe('generator_late');
    pass(1);
    expect(quietsOf(socket).at(-1)).toMatchObject({ reason: 'lunch_break' });
  });

  test('a half day ends at noon, and a holiday follows: both report the next opening', () => {
    // Christmas Eve is a half day in Hong Kong; it opens again on Monday 28 December.
    const { socket, publish, pass, passUntil } = subscribed('2026-12-24T03:59:50Z', ['0700.HK']);
    pass(10, () => publish(['0700.HK']));
    passUntil('2026-12-24T16:00:00Z');
    const until = `2026-12-28T01:30:00${MICROS}`;
    expect(quietsOf(socket).slice(2)).toMatchObject([
      { reason: 'market_closed', since: `2026-12-24T04:00:00${MICROS}`, until },
      { reason: 'holiday', since: `2026-12-24T16:00:00${MICROS}`, until },
    ]);
  });

  test('is not quiet if it sends pills while its market is closed', () => {
    const { socket, publish, pass } = subscribed('2026-11-20T02:45:00Z', ['7203.T']);
    pass(60, () => publish(['7203.T']));
    expect(quietsOf(socket).slice(2)).toEqual([]);
  });

  test('is not late without a calendar; a test symbol is late even at weekends', () => {
    const { socket, publish, pass } = subscribed('2026-11-21T02:00:00Z', ['BTC/USD', 'TEST:A']);
    publish(['BTC/USD', 'TEST:A']);
    pass(6);
    expect(quietsOf(socket).slice(4).map(shape)).toEqual([
      ['BTC/USD', 'calendar_unknown', false],
      ['TEST:A', 'generator_late', false],
    ]);
  });

  test('is unknown after the end of the calendar', () => {
    const { socket, publish, pass } = subscribed('2031-03-04T02:00:00Z', ['7203.T']);
    publish(['7203.T']);
    pass(6);
    expect(quietsOf(socket).at(-1)).toMatchObject({ reason: 'calendar_unknown', until: null });
  });

  test('reports a typhoon day that is declared while it is quiet', () => {
    const { socket, publish, pass, markets } = subscribed('2026-11-20T02:00:00Z', ['0700.HK']);
    publish(['0700.HK']);
    pass(10);
    expect(quietsOf(socket).at(-1)!.reason).toBe('generator_late');
    markets.override({ XHKG: { '2026-11-20': 'closed' } });
    pass(1);
    expect(quietsOf(socket).at(-1)).toMatchObject({
      ...{ reason: 'holiday', until: `2026-11-23T01:30:00${MICROS}` },
    });
  });

  test('is reported to a later subscriber only if it is quiet', () => {
    const model = createQuietModel('2026-11-20T02:29:59Z');
    model.publish(['7203.T', '0700.HK']);
    model.pass(8, () => model.publish(['0700.HK']));
    const socket = model.connect();
    model.send(socket, { op: 'subscribe', symbols: ['7203.T', '0700.HK'] });
    model.settle();
    expect(quietsOf(socket).map(shape)).toEqual([['7203.T', 'lunch_break', false]]);
  });

  test('a rejected pill ends the quiet period too; backfill does not', () => {
    const filter = { min_confidence: 99 };
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T'], { filter });
    publish(['7203.T']);
    pass(10);
    publish(['7203.T'], { backfill: true });
    pass(1);
    expect(quietsOf(socket).map(shape).at(-1)).toEqual(['7203.T', 'generator_late', false]);
    publish(['7203.T']);
    pass(1);
    expect(quietsOf(socket).map(shape).at(-1)).toEqual(['7203.T', 'generator_late', true]);
    expect(socket.frames.some(({ type }) => type === 'pill')).toBe(false);
  });

  test('is not reported if its first pill arrives before the report', () => {
    const model = createQuietModel(IN_SESSION);
    const socket = model.connect();
    model.send(socket, { op: 'subscribe', symbols: ['7203.T'], snapshot: false });
    model.publish(['7203.T']);
    model.pass(3, () => model.publish(['7203.T']));
    expect(quietsOf(socket)).toEqual([]);
  });

  test('is not reported after it was unsubscribed', () => {
    const { socket, publish, pass, send } = subscribed(IN_SESSION, ['7203.T']);
    publish(['7203.T']);
    pass(1);
    send(socket, { op: 'unsubscribe', symbols: ['7203.T'] });
    pass(20);
    expect(quietsOf(socket)).toHaveLength(2);
  });
});
