import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCursor, parsePosition } from '../../../schemas/position.ts';
import { createModel, type FakeSocket, lastLiveUntil, type Model } from '../testing/model.ts';
import { type FrameOf, framesOf, type GotPill, pillsOf } from '../testing/stream-client.ts';
import { AVRO_CODEC } from '../wire/avro-codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';

const SYMBOLS = ['AA', 'AB', 'AC', 'TEST:D'];

type Step =
  | { do: 'publish'; pills: { symbol: string; late: boolean; backfill: boolean }[] }
  | { do: 'subscribe'; symbols: string[]; mode: 'all' | 'latest'; backfill: boolean }
  | { do: 'unsubscribe'; symbols: string[] }
  | { do: 'read'; bytes: number }
  | { do: 'pass'; ms: number }
  | { do: 'beat' }
  | { do: 'drain' };

const symbolsOf: fc.Arbitrary<string[]> = fc.oneof(
  fc.uniqueArray(fc.constantFrom(...SYMBOLS), { minLength: 1, maxLength: 3 }),
  fc.constant<string[]>(['*']),
);
const pillOf = fc.record({
  symbol: fc.constantFrom(...SYMBOLS),
  late: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  backfill: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
});
const stepOf = (modes: ('all' | 'latest')[]): fc.Arbitrary<Step> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('publish' as const),
        pills: fc.array(pillOf, { minLength: 1, maxLength: 6 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('subscribe' as const),
        symbols: symbolsOf,
        mode: fc.constantFrom(...modes),
        backfill: fc.boolean(),
      }),
    },
    fc.record({ do: fc.constant('unsubscribe' as const), symbols: symbolsOf }),
    { weight: 3, arbitrary: fc.record({ do: fc.constant('read' as const), bytes: fc.nat(3_000) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(300) }) },
    fc.record({ do: fc.constant('beat' as const) }),
    fc.record({ do: fc.constant('drain' as const) }),
  );

function run(model: Model, socket: FakeSocket, steps: readonly Step[]): void {
  const connection = socket.connection!;
  const send = (frame: object) => {
    if (socket.closed === undefined) socket.requests += 1;
    connection.receive(Buffer.from(JSON.stringify(frame)), false);
  };
  for (const step of steps) {
    if (step.do === 'publish') model.publish(step.pills);
    else if (step.do === 'read') socket.read(step.bytes);
    else if (step.do === 'pass') model.pass(step.ms);
    else if (step.do === 'drain') connection.drain(0, 1_000);
    else if (step.do === 'beat') {
      model.hub.flush();
      connection.sendHeartbeat();
    } else if (step.do === 'unsubscribe') send({ op: 'unsubscribe', symbols: step.symbols });
    else {
      const { do: op, ...rest } = step;
      const id = JSON.stringify({ mode: step.mode, backfill: step.backfill });
      send({ op, id, ...rest });
    }
  }
}

/** Reads the frames of a client as a careful client does, and checks every guarantee. */
function check(model: Model, socket: FakeSocket) {
  const modes = new Map<string, { mode: string; backfill: boolean }>();
  const last = new Map<string, string | null | undefined>();
  const seen = new Set<string>();
  const subscriptionOf = (symbol: string) =>
    modes.get(symbol) ?? (symbol.startsWith('TEST:') ? undefined : modes.get('*'));
  let joining: FrameOf<'subscribed'> | undefined;
  let answered = 0;
  let sent = 0;
  let skipped = 0;

  const checkComplete = (position: string) => {
    const { offsets } = parsePosition(position)!;
    for (const symbol of SYMBOLS) {
      const subscription = subscriptionOf(symbol);
      if (subscription?.backfill !== false) continue;
      const partition = symbol.charCodeAt(symbol.length - 1) % 2;
      // `latest` leaves out late pills, and a newer pill may replace older ones.
      const withLate = subscription.mode === 'all';
      const newest = lastLiveUntil(model, symbol, offsets.get(partition) ?? -1, withLate);
      const known = last.get(symbol);
      if (newest === null || known === undefined) continue;
      const offset = known === null ? -1 : parseCursor(known)!.offset;
      expect(offset, `${symbol} at ${position}`).toBeGreaterThanOrEqual(
        parseCursor(newest)!.offset,
      );
    }
  };
  const takePill = (pill: GotPill) => {
    sent += 1;
    skipped += pill.skipped ?? 0;
    const subscription = subscriptionOf(pill.symbol);
    expect(subscription, `no subscription includes ${pill.symbol}`).toBeDefined();
    expect(seen.has(pill.cursor), `${pill.cursor} came twice`).toBe(false);
    seen.add(pill.cursor);
    if (pill.backfill) expect(subscription!.backfill).toBe(true);
    if (subscription!.backfill) expect(pill.prev).toBeNull();
    const before = last.get(pill.symbol);
    if (before != null) {
      expect(parseCursor(pill.cursor)!.offset).toBeGreaterThan(parseCursor(before)!.offset);
    }
    if (subscription!.mode === 'latest') expect(pill.late).toBeUndefined();
    else if (!subscription!.backfill) {
      if (before !== undefined) expect(pill.prev).toBe(before);
    }
    last.set(pill.symbol, pill.cursor);
  };
  for (const frame of socket.frames) {
    if (frame.type === 'subscribed' || frame.type === 'unsubscribed') answered += 1;
    if (frame.type === 'subscribed') {
      joining = frame;
      const asked = JSON.parse(frame.id);
      for (const symbol of frame.accepted) {
        modes.set(symbol, asked);
        for (const own of symbol === '*' ? SYMBOLS : [symbol]) {
          if (symbol !== '*' || !modes.has(own)) last.delete(own);
        }
      }
    } else if (frame.type === 'snapshot') {
      expect(joining).toBeDefined();
      for (const row of frame.pills) last.set(row.symbol, row.last_cursor);
    } else if (frame.type === 'live') joining = undefined;
    else if (frame.type === 'unsubscribed') {
      for (const symbol of frame.symbols) {
        modes.delete(symbol);
        for (const own of symbol === '*' ? SYMBOLS : [symbol]) {
          if (!modes.has(own)) last.delete(own);
        }
      }
    } else if (frame.type === 'pill' || frame.type === 'pills') {
      expect(joining, 'no pill between subscribed and live').toBeUndefined();
      for (const pill of pillsOf(frame)) takePill(pill);
    } else if (frame.type === 'heartbeat') {
      expect(frame.sent).toBe(sent);
      checkComplete(frame.position);
    } else if (frame.type === 'drain') checkComplete(frame.position);
    else if (frame.type === 'error' && frame.position && answered === socket.requests) {
      // If an answer was dropped with the queue, the client does not know its subscriptions.
      checkComplete(frame.position);
    }
  }
  return { sent, skipped, checkComplete };
}

const UNHURRIED = { framesInBurst: 1_000_000 };
const RUNS = { numRuns: 300 };

describe.each([JSON_CODEC, AVRO_CODEC])('in any order of events, in $name', (codec) => {
  test('nothing is lost, duplicated or out of order, and every position is correct', () => {
    fc.assert(
      fc.property(
        fc.array(stepOf(['all', 'latest']), { maxLength: 80, size: 'max' }),
        fc.constantFrom(0, 500, 2_000, 1_000_000),
        (steps, windowBytes) => {
          const model = createModel(UNHURRIED);
          const socket = model.connect(windowBytes, codec);
          run(model, socket, steps);
          for (let turn = 0; turn < 200; turn += 1) {
            model.pass(1_000);
            socket.read(1_000_000);
          }
          socket.connection!.sendHeartbeat();
          const { checkComplete } = check(model, socket);
          const position = model.latestPills.position();
          expect(socket.frames.at(-1)).toMatchObject({ type: 'heartbeat', position });
          checkComplete(position);
        },
      ),
      RUNS,
    );
  });

  test('a queue exceeds its bound by at most one tick, and ends with a correct position', () => {
    const limits = { ...UNHURRIED, queueBytesMax: 3_000, frameOutBytesMax: 600 };
    let closed = 0;
    fc.assert(
      fc.property(fc.array(stepOf(['all', 'latest']), { maxLength: 80, size: 'max' }), (steps) => {
        const model = createModel(limits);
        const socket = model.connect(700, codec);
        for (const step of steps) {
          if (socket.closed !== undefined) break;
          run(model, socket, [step]);
          expect(socket.connection!.outbox.queueBytes).toBeLessThanOrEqual(3_000);
        }
        check(model, socket);
        if (socket.closed === undefined) return;
        closed += 1;
        expect(socket.closed).toEqual({ code: 4001, reason: 'slow_consumer' });
        expect(socket.frames.at(-1)).toMatchObject({ code: 'slow_consumer', close: 4001 });
      }),
      RUNS,
    );
    expect(closed).toBeGreaterThan(0);
  });
});

describe('a reader of latest that stops', () => {
  test('gets the newest pill of each symbol when it reads again, and the count of missed pills', () => {
    const model = createModel();
    const socket = model.connect(2_000);
    const send = (frame: object) =>
      socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
    const id = JSON.stringify({ mode: 'latest', backfill: false });
    send({ op: 'subscribe', id, symbols: ['*'], mode: 'latest', snapshot: false });
    for (let n = 0; n < 50; n += 1) {
      model.publish([{ symbol: 'AA' }, { symbol: 'AB' }, { symbol: 'AA', late: true }]);
      model.pass(10);
    }
    expect(socket.connection!.outbox.queueBytes).toBeLessThan(1_000);
    socket.read(1_000_000);
    model.hub.flush();
    socket.connection!.sendHeartbeat();
    const { sent, skipped } = check(model, socket);
    const heartbeat = socket.frames.at(-1)!;
    const newest = pillsOf(socket.frames.at(-2)!);
    expect(newest.map(({ cursor }) => cursor)).toEqual(
      ['AA', 'AB'].map((symbol) => {
        const { partition, offset } = model.latestPills.get(symbol)!;
        return `${partition}-${offset}`;
      }),
    );
    // 50 late pills are left out for all; every other pill is either sent or counted.
    expect(sent + skipped).toBe(100);
    expect(heartbeat).toMatchObject({ sent, skipped: skipped + 50, queue_bytes: 0 });
  });

  test('gets a drain position that excludes pills held back', () => {
    const model = createModel();
    const socket = model.connect(0);
    const { connection } = socket;
    const frame = { op: 'subscribe', symbols: ['*'], mode: 'latest', snapshot: false };
    connection!.receive(Buffer.from(JSON.stringify(frame)), false);
    const readAll = () => {
      for (let n = 0; n < 10; n += 1) socket.read(1_000_000);
    };
    readAll();
    for (let n = 0; n < 3; n += 1) {
      model.publish([{ symbol: 'AB' }]);
      model.pass(10);
    }
    connection!.drain(100, 2_000);
    readAll();
    expect(framesOf(socket.frames, 'drain')).toMatchObject([
      { reason: 'shutdown', position: 'e1:0-0', reconnect_after_ms: 100, grace_ms: 2_000 },
    ]);
    expect(socket.frames.flatMap(pillsOf).map(({ cursor }) => cursor)).toEqual(['0-0', '0-2']);
  });
});
