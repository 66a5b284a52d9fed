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
  test('is reported silent to all connections once, and alive again', () => {
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

  test('is not kept alive by test symbols; its silence is not reported while all markets are closed', () => {
    const { socket, publish, pass, generator } = subscribed('2026-11-21T02:00:00Z', ['7203.T']);
    publish(['7203.T']);
    pass(60, () => publish(['TEST:A']));
    expect(generator()).toMatchObject({ state: 'silent', age_ms: 60_000, in_session: false });
    expect(silencesOf(socket)).toEqual([]);
  });

  test('is in session by the symbols that have a calendar, beside others without one', () => {
    const open = subscribed(IN_SESSION, ['*']);
    open.publish(['BTC/USD']);
    open.pass(1);
    expect(open.generator().in_session).toBe(null);
    open.publish(['7203.T']);
    expect(open.generator().in_session).toBe(true);
    const closed = subscribed('2026-11-21T02:00:00Z', ['*']);
    closed.publish(['7203.T', 'BTC/USD']);
    expect(closed.generator().in_session).toBe(false);
    // After the end of the calendars, none says anything.
    const unknown = subscribed('2031-03-04T02:00:00Z', ['*']);
    unknown.publish(['7203.T']);
    expect(unknown.generator().in_session).toBe(null);
  });

  test('is not reported silent during an outage of the log, nor right after it', () => {
    const { socket, publish, pass, setReceiving } = subscribed(IN_SESSION, ['7203.T']);
    pass(3, () => publish(['7203.T']));
    const before = quietsOf(socket).length;
    setReceiving(false);
    pass(60);
    setReceiving(true);
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

  test('gets summaries by venue: count, first symbols, and since when', () => {
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
    const over = { venue: 'XHKG', reason: 'generator_late', over: true, count: 0, symbols: [] };
    expect(quietsOf(socket).at(-1)).toMatchObject(over);
    publish(KONG);
    pass(5);
    // Few summaries were sent for thousands of symbols.
    expect(quietsOf(socket).length).toBeLessThan(10);
  });

  test('gets no summary of a venue while any of its symbols sends, nor a count that changes', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['*']);
    const all = ['7203.T', '6758.T', '9984.T', '0700.HK'];
    pass(20, () => publish(all));
    // 6758.T is late at once, 9984.T now and then; 7203.T keeps sending.
    pass(300, (second) => {
      publish(second % 30 < 5 ? ['7203.T', '9984.T', '0700.HK'] : ['7203.T', '0700.HK']);
    });
    expect(quietsOf(socket)).toEqual([]);
    // Tokyo stops, Hong Kong does not.
    pass(20, () => publish(['0700.HK']));
    expect(quietsOf(socket)).toMatchObject([
      { venue: 'XTKS', reason: 'generator_late', count: 3, since: `2026-11-20T01:00:19${MICROS}` },
    ]);
    publish(['7203.T', '0700.HK']);
    pass(6, () => publish(['7203.T', '0700.HK']));
    expect(quietsOf(socket).slice(1)).toMatchObject([
      { venue: 'XTKS', reason: 'generator_late', over: true, count: 0 },
    ]);
  });

  test('an interruption of the log makes no venue silent', () => {
    const { socket, publish, pass, setReceiving } = subscribed(IN_SESSION, ['*']);
    pass(10, () => publish(['7203.T', '6758.T']));
    pass(20, () => publish(['7203.T']));
    setReceiving(false);
    pass(60);
    setReceiving(true);
    pass(20, () => publish(['7203.T']));
    expect(quietsOf(socket)).toEqual([]);
  });

  test('a late subscriber and a blocked one end up with the same summaries', () => {
    const model = createQuietModel('2026-11-20T02:29:59Z');
    const blocked = model.connect(400);
    model.send(blocked, { op: 'subscribe', symbols: ['*'], snapshot: false });
    model.publish([...TOKYO.slice(0, 50), ...KONG.slice(0, 50)]);
    model.pass(10);
    const queued = blocked.connection!.outbox.queueBytes;
    model.pass(600, (second) => {
      if (second % 30 === 0) model.publish([KONG[second]!]);
    });
    model.publish(KONG.slice(0, 50));
    model.pass(2);
    // Pills are queued for it, but no quiet frames.
    expect(quietsOf(blocked)).toEqual([]);
    expect(blocked.connection!.outbox.queueBytes).toBeGreaterThan(queued);
    model.pass(20, () => blocked.read(1e12));
    const late = model.connect();
    model.send(late, { op: 'subscribe', symbols: ['*'], snapshot: false });
    model.settle();
    const now = (frames: readonly QuietFrame[]) =>
      frames.filter(({ over, count }) => over === undefined && count !== undefined);
    expect(now(quietsOf(late)).map(({ venue }) => venue)).toContain('XTKS');
    expect(now(quietsOf(blocked))).toEqual(now(quietsOf(late)));
  });
});
