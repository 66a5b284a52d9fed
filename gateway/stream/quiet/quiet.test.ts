import { describe, expect, test } from 'vitest';
import { createCadences, lateAfterMs } from '../../../lib/signal/cadence.ts';
import { judgeSilence } from '../../../lib/signal/silence.ts';
import { LIMITS } from '../limits.ts';
import { pillsOf } from '../testing/client.ts';
import { createQuietModel, type QuietFrame, quietsOf, silencesOf } from '../testing/quiet-model.ts';

const MICROS = '.000000Z';
/** 10:00 in Tokyo and 09:00 in Hong Kong, on a Friday. */
const IN_SESSION = '2026-11-20T01:00:00Z';
const shape = ({ symbol, reason, over }: QuietFrame) => [symbol, reason, over === true];

function subscribed(start: string, symbols: readonly string[], fields: object = {}) {
  const model = createQuietModel(start);
  const socket = model.connect();
  model.send(socket, { op: 'subscribe', symbols, snapshot: false, ...fields });
  model.settle();
  return { ...model, socket };
}

describe('a symbol that somebody named', () => {
  test('was never seen: said at once after live, and over with the first pill', () => {
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

  test('is late after 5 s without a pill, and says when the next one has come', () => {
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

  test('is patient with a slow symbol: five of its median cadences', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T']);
    pass(300, (second) => {
      if (second % 20 === 0) publish(['7203.T']);
    });
    // It was late by 5 s while its pace was not known yet.
    const before = quietsOf(socket).length;
    pass(79);
    expect(quietsOf(socket)).toHaveLength(before);
    pass(1);
    expect(quietsOf(socket).at(-1)).toMatchObject({
      ...{ reason: 'generator_late', late_after_ms: 100_000 },
      since: `2026-11-20T01:04:40${MICROS}`,
    });
  });

  test('is judged by its new pace when it has become quicker', () => {
    const { socket, publish, pass } = subscribed(IN_SESSION, ['7203.T']);
    publish(['7203.T']);
    pass(60);
    // Its only interval was a minute: by that it would be late in 5 minutes.
    pass(5, () => publish(['7203.T']));
    const before = quietsOf(socket).length;
    pass(9);
    expect(quietsOf(socket).slice(before)).toMatchObject([
      { reason: 'generator_late', late_after_ms: 5_000 },
    ]);
  });

  test('rests at lunch until it ends, and is late when nothing comes after it', () => {
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

  test('late before lunch is at lunch in the second in which that begins', () => {
    const { socket, publish, pass, passUntil } = subscribed('2026-11-20T02:29:40Z', ['7203.T']);
    publish(['7203.T']);
    passUntil('2026-11-20T02:29:59Z');
    expect(quietsOf(socket).at(-1)!.reason).toBe('generator_late');
    pass(1);
    expect(quietsOf(socket).at(-1)).toMatchObject({ reason: 'lunch_break' });
  });

  test('a half day ends at noon, and a holiday follows: each says when it trades again', () => {
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

  test('that sends on while its market rests is not quiet', () => {
    const { socket, publish, pass } = subscribed('2026-11-20T02:45:00Z', ['7203.T']);
    pass(60, () => publish(['7203.T']));
    expect(quietsOf(socket).slice(2)).toEqual([]);
  });

  test('without a calendar is not called late; a test symbol is, at weekends too', () => {
    const { socket, publish, pass } = subscribed('2026-11-21T02:00:00Z', ['BTC/USD', 'TEST:A']);
    publish(['BTC/USD', 'TEST:A']);
    pass(6);
    expect(quietsOf(socket).slice(4).map(shape)).toEqual([
      ['BTC/USD', 'calendar_unknown', false],
      ['TEST:A', 'generator_late', false],
    ]);
  });

  test('past the end of the calendar it is unknown whether it is late', () => {
    const { socket, publish, pass } = subscribed('2031-03-04T02:00:00Z', ['7203.T']);
    publish(['7203.T']);
    pass(6);
    expect(quietsOf(socket).at(-1)).toMatchObject({ reason: 'calendar_unknown', until: null });
  });

  test('a typhoon day that is declared while it waits is told', () => {
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

  test('who subscribes later is told what is quiet already, and nothing of what is not', () => {
    const model = createQuietModel('2026-11-20T02:29:59Z');
    model.publish(['7203.T', '0700.HK']);
    model.pass(8, () => model.publish(['0700.HK']));
    const socket = model.connect();
    model.send(socket, { op: 'subscribe', symbols: ['7203.T', '0700.HK'] });
    model.settle();
    expect(quietsOf(socket).map(shape)).toEqual([['7203.T', 'lunch_break', false]]);
  });

  test('a pill that the filter keeps away ends the silence too; backfill does not', () => {
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

  test('whose first pill comes before it was said to be quiet is not spoken of', () => {
    const model = createQuietModel(IN_SESSION);
    const socket = model.connect();
    model.send(socket, { op: 'subscribe', symbols: ['7203.T'], snapshot: false });
    model.publish(['7203.T']);
    model.pass(3, () => model.publish(['7203.T']));
    expect(quietsOf(socket)).toEqual([]);
  });

  test('that nobody names any more is not told of', () => {
    const { socket, publish, pass, send } = subscribed(IN_SESSION, ['7203.T']);
    publish(['7203.T']);
    pass(1);
    send(socket, { op: 'unsubscribe', symbols: ['7203.T'] });
    pass(20);
    expect(quietsOf(socket)).toHaveLength(2);
  });
});

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

test('whatever comes and goes, who listens knows what is so, and is told nothing twice', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e9);
  let state = seed;
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  const symbols = ['7203.T', '6758.T', '0700.HK', '0005.HK', 'USD/JPY', 'TEST:A', 'AAPL', 'BHP.AX'];
  // Through the morning, lunch and the closes of three venues; by chance through a weekend.
  const model = createQuietModel(['2026-11-20T02:20:00Z', '2026-11-20T21:50:00Z'][random(2)]!);
  const lastAt = new Map<string, number>();
  const paces = new Map(symbols.map((symbol) => [symbol, 1 + random(20)]));
  const sockets = Array.from({ length: 3 }, (_, n) => model.connect(n === 0 ? 3_000 : 1e12));
  for (const socket of sockets) {
    model.send(socket, { op: 'subscribe', symbols, snapshot: false });
  }
  const cadences = createCadences(100);
  let isDeaf = false;
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
    if (random(60) === 0) isDeaf = !isDeaf;
    if (!isDeaf) read();
  });
  read();
  model.pass(3);
  expect(sockets.map(({ closed }) => closed)).toEqual([undefined, undefined, undefined]);
  for (const socket of sockets) {
    const told = new Map<string, QuietFrame>();
    for (const frame of quietsOf(socket)) {
      const before = told.get(frame.symbol);
      // To the deaf one what was over and has begun again is the same.
      if (socket !== sockets[0]) expect(frame, `SEED=${seed}`).not.toEqual(before);
      told.set(frame.symbol, frame);
    }
    for (const symbol of symbols) {
      const judge = (nowMs: number) =>
        judgeSilence({
          lastAtMs: lastAt.get(symbol),
          lateAfterMs: lateAfterMs(cadences.medianMs(symbol)),
          market: model.markets.of(symbol, nowMs),
          hearingSinceMs: undefined,
          nowMs,
        }).quiet?.reason;
      const place = `${symbol} SEED=${seed}`;
      const last = told.get(symbol);
      const isQuiet = last !== undefined && last.over === undefined;
      // One whose pace has just quickened is looked at within 5 s.
      const reasons = [judge(model.nowMs() - 5_000), judge(model.nowMs())];
      if (reasons[0] !== undefined) {
        expect(isQuiet, place).toBe(true);
        expect(reasons, place).toContain(last!.reason);
      } else if (isQuiet) {
        // Told before its market opened, or just now; in any case after its last pill.
        const pill = socket.frames.findLastIndex((frame) =>
          pillsOf(frame).some((one) => one.symbol === symbol),
        );
        expect(socket.frames.indexOf(last), place).toBeGreaterThan(pill);
      }
    }
  }
}, 120_000);

describe('the cost', () => {
  test('a turn tells a bounded number of frames, whoever wants how much', () => {
    const symbols = Array.from({ length: 900 }, (_, n) => `${1_000 + n}.T`);
    const model = createQuietModel('2026-11-20T02:29:59Z');
    const sockets = Array.from({ length: 10 }, () => model.connect());
    for (const socket of sockets) {
      model.send(socket, { op: 'subscribe', symbols, snapshot: false });
    }
    const told = () => sockets.reduce((sum, socket) => sum + quietsOf(socket).length, 0);
    let before = told();
    const bounded = () => {
      let turns = 0;
      for (; model.turns.length > 0; turns += 1) {
        model.turns.shift()!();
        const after = told();
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
  }, 120_000);

  test('one frame is made for all who get it', () => {
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

  test('a blocked socket is told the newest state of each symbol, and none of it waits in its queue', () => {
    const model = createQuietModel(IN_SESSION);
    const socket = model.connect(600);
    model.send(socket, { op: 'subscribe', symbols: ['7203.T', '6758.T'], snapshot: false });
    model.publish(['7203.T', '6758.T']);
    model.pass(120, (second) => {
      if (second % 10 === 0) model.publish(['6758.T']);
    });
    expect(quietsOf(socket)).toEqual([]);
    model.pass(20, () => socket.read(1e12));
    // The other one was late, too, for a while.
    expect(quietsOf(socket).map(shape)).toEqual([['7203.T', 'generator_late', false]]);
  });
});
