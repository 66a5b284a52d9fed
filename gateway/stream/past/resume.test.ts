import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { framesOf, type GotPill, pillsOf } from '../testing/client.ts';
import { createModel, type FakeSocket, type Model } from '../testing/model.ts';
import { AVRO_CODEC } from '../wire/avro-codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';

const SYMBOLS = ['AA', 'AB', 'AC', 'TEST:D'];

const pillOf = fc.record({
  symbol: fc.constantFrom(...SYMBOLS),
  late: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  backfill: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
});
const wishOf = fc.record({
  symbols: fc.oneof(
    fc.uniqueArray(fc.constantFrom(...SYMBOLS), { minLength: 1, maxLength: 3 }),
    fc.constant<string[]>(['*']),
  ),
  mode: fc.constantFrom('all' as const, 'latest' as const),
  backfill: fc.boolean(),
  filter: fc.constantFrom(undefined, { min_confidence: 4 }),
});

function send(socket: FakeSocket, frame: object): void {
  socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
}

function readAll(model: Model, socket: FakeSocket): void {
  for (let turn = 0; turn < 100; turn += 1) {
    model.pass(1_000);
    socket.read(1_000_000);
  }
}

function cursorsOf(pills: readonly GotPill[]): string[] {
  return pills.map(({ cursor }) => cursor);
}

async function turnUntil(isSo: () => boolean): Promise<void> {
  for (let n = 0; n < 100 && !isSo(); n += 1) await Promise.resolve();
}

/** Lets what was promised in this turn happen. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a client that comes back with a position', () => {
  test.each([JSON_CODEC, AVRO_CODEC])(
    'gets exactly what came after it and matches, in order, marked, then live pills ($name)',
    (codec) => {
      fc.assert(
        fc.property(
          fc.array(pillOf, { maxLength: 60, size: 'max' }),
          fc.array(pillOf, { maxLength: 60, size: 'max' }),
          fc.array(pillOf, { maxLength: 20 }),
          wishOf,
          fc.constantFrom(0, 700, 1_000_000),
          (before, missed, live, wish, windowBytes) => {
            const model = createModel({ frameOutBytesMax: 900 });
            model.publish(before);
            const resume = model.board.position();
            model.publish(missed);
            const socket = model.connect(windowBytes, codec);
            send(socket, { op: 'subscribe', id: '1', ...wish, resume });
            model.publish(live);
            readAll(model, socket);

            const matching = model.log.slice(before.length).filter((pill) => {
              const named = wish.symbols.includes(pill.symbol);
              const every = wish.symbols[0] === '*' && !pill.symbol.startsWith('TEST:');
              return (
                (named || every) &&
                (wish.backfill || !pill.backfill) &&
                !(wish.mode === 'latest' && pill.late) &&
                (wish.filter === undefined || pill.confidence >= 4)
              );
            });
            const replayed = matching.filter(
              (pill) => model.log.indexOf(pill) < before.length + missed.length,
            );
            const [subscribed] = framesOf(socket.frames, 'subscribed');
            expect(subscribed).toMatchObject({ recovered: true, replaying: replayed.length });
            expect(framesOf(socket.frames, 'live')[0]!.replayed).toBe(replayed.length);
            const got = socket.frames.flatMap(pillsOf);
            const again = got.filter((pill) => pill.replayed === true);
            expect(new Set(cursorsOf(again))).toEqual(
              new Set(replayed.map(({ partition, offset }) => `${partition}-${offset}`)),
            );
            for (const symbol of SYMBOLS) {
              const own = again.filter((pill) => pill.symbol === symbol);
              const offsets = own.map(({ cursor }) => Number(cursor.split('-')[1]));
              expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
              if (own.length > 0) expect(own[0]!.prev).toBeNull();
            }
            // Replayed before live, nothing twice.
            expect(got.findLastIndex((pill) => pill.replayed)).toBe(again.length - 1);
            expect(new Set(cursorsOf(got)).size).toBe(got.length);
            if (wish.mode === 'all') expect(got).toHaveLength(matching.length);
            expect(framesOf(socket.frames, 'gap')).toEqual([]);
            expect(framesOf(socket.frames, 'snapshot')).toEqual([]);
            socket.connection!.beat();
            const beats = framesOf(socket.frames, 'heartbeat');
            expect(beats.at(-1)!.sent).toBe(got.length);
          },
        ),
        { numRuns: 300 },
      );
    },
  );

  test('a partition that the position leaves out is at its beginning', () => {
    const model = createModel();
    model.publish([{ symbol: 'AA' }, { symbol: 'AB' }]);
    const socket = model.connect(1_000_000);
    send(socket, { op: 'subscribe', symbols: ['*'], resume: 'e1:0-0' });
    const got = cursorsOf(socket.frames.flatMap(pillsOf));
    expect(got).toEqual(['1-0']);
  });
});

describe('what cannot be resumed is told, never partial, with a fresh snapshot', () => {
  const LIMITS = { backlogPillsMax: 10, replayPillsMax: 6, replayWaitMs: 0 };

  async function resumed(
    resume: unknown,
    symbols = ['AA', 'AB'],
    isPromised: (partition: number, after: number) => boolean = () => true,
  ) {
    const model = createModel(LIMITS);
    Object.assign(model.house, { isPromised });
    for (let n = 0; n < 10; n += 1) model.publish([{ symbol: 'AA' }, { symbol: 'AB' }]);
    model.pass(1_000);
    const socket = model.connect(1_000_000);
    send(socket, { op: 'subscribe', id: '1', symbols, snapshot: false, resume });
    await turn();
    await turn();
    return socket;
  }

  test.each([
    ['of another log', 'zz:0-1', 'epoch_unknown'],
    ['of a partition that is not there', 'e1:0-1,7-3', 'partition_unknown'],
    ['that was forgotten', 'e1:0-2,1-9', 'position_expired'],
    ['ahead of the log', 'e1:0-10,1-9', 'position_ahead'],
    ['with more after it than one replay carries', 'e1:0-4,1-4', 'too_many_missed'],
  ])('%s', async (_what, resume, reason) => {
    const socket = await resumed(resume);
    const [subscribed] = framesOf(socket.frames, 'subscribed');
    expect(subscribed).toMatchObject({ recovered: false, reason, replaying: 0 });
    expect(subscribed!.oldest).toBe('e1:0-4,1-4');
    const types = socket.frames.map(({ type }) => type).filter((type) => type !== 'gap');
    expect(types).toEqual(['welcome', 'subscribed', 'snapshot', 'live']);
    expect(socket.frames.flatMap(pillsOf)).toEqual([]);
  });

  test('what is missing is named, with the call that fills it', async () => {
    const named = await resumed('e1:0-2,1-9');
    expect(framesOf(named.frames, 'gap')).toEqual([
      {
        type: 'gap',
        symbols: ['AB'],
        after: '0-2',
        until: '0-9',
        reason: 'position_expired',
        fill: '/api/pills?symbol=AB&epoch=e1&after=0-2&until=0-9&grant=granted',
        fill_free: true,
      },
    ]);
    const all = await resumed('e1:0-2', ['*']);
    expect(framesOf(all.frames, 'gap')).toMatchObject([
      {
        symbols: ['*'],
        after: null,
        until: '1-9',
        fill: '/api/pills?epoch=e1&until=1-9&grant=granted',
      },
      { symbols: ['*'], after: '0-2', until: '0-9' },
    ]);
  });

  test('history is no gift: a position older than is promised is filled by calls that count', async () => {
    const isPromised = (partition: number, after: number) => partition === 0 && after >= 2;
    const gapsAfter = async (resume: string) => {
      const { frames } = await resumed(resume, ['*'], isPromised);
      return framesOf(frames, 'gap').map(({ fill, fill_free }) => [fill, fill_free]);
    };
    const counted = ['/api/pills?epoch=e1&until=1-9', false];
    expect(await gapsAfter('e1:')).toEqual([counted, ['/api/pills?epoch=e1&until=0-9', false]]);
    expect(await gapsAfter('e1:0-2')).toEqual([
      counted,
      ['/api/pills?epoch=e1&after=0-2&until=0-9&grant=granted', true],
    ]);
  });

  test('frames that come meanwhile are kept and answered in order', async () => {
    const model = createModel({ ...LIMITS, framesInBurst: 1_000 });
    model.publish([{ symbol: 'AA' }]);
    const socket = model.connect(1_000_000);
    send(socket, {
      op: 'subscribe',
      id: '1',
      symbols: ['AA'],
      resume: { since: '2001-01-01T00:00:00Z' },
    });
    send(socket, { op: 'subscribe', id: '2', symbols: ['AB'] });
    send(socket, { op: 'unsubscribe', id: '3', symbols: ['AA'] });
    send(socket, { op: 'ping', id: '4' });
    for (let n = 0; n < 10; n += 1) await turn();
    const told = socket.frames
      .filter(({ type }) => ['subscribed', 'unsubscribed', 'pong'].includes(type))
      .map((frame) => (frame as { id?: string }).id);
    expect(told).toEqual(['4', '1', '2', '3']);
  });

  test('no position is told beyond what the resume goes on from', async () => {
    const model = createModel();
    model.publish([{ symbol: 'AA' }, { symbol: 'AB' }, { symbol: 'AA' }]);
    const ahead = model.board.position();
    for (const [resume, position] of [
      [{ since: '2001-01-01T00:00:00Z' }, 'e1:'],
      // Ahead of this instance in one partition: it waits for the rest.
      ['e1:0-99,1-0', 'e1:0-0,1-0'],
    ] as const) {
      const socket = model.connect(1_000_000);
      send(socket, { op: 'subscribe', symbols: ['AA'], resume });
      socket.connection!.beat();
      socket.connection!.drain(0, 1_000);
      expect(framesOf(socket.frames, 'heartbeat')[0]!.position).toBe(position);
      expect(framesOf(socket.frames, 'drain')[0]!.position).toBe(position);
      expect(position).not.toBe(ahead);
    }
  });

  test('what waits behind a second one still counts', async () => {
    const model = createModel({ ...LIMITS, framesInBurst: 1_000, heldFrameBytesMax: 400 });
    const socket = model.connect(1_000_000);
    const slow = { op: 'subscribe', symbols: ['AA'], resume: { since: '2001-01-01T00:00:00Z' } };
    send(socket, slow);
    send(socket, slow);
    for (let n = 0; n < 7; n += 1) send(socket, { op: 'subscribe', symbols: ['AB'] });
    expect(socket.closed).toBeUndefined();
    // The first is answered; the second holds, with seven behind it.
    await turnUntil(() => framesOf(socket.frames, 'subscribed').length === 1);
    for (let n = 0; n < 6; n += 1) send(socket, { op: 'subscribe', symbols: ['AB'] });
    expect(socket.closed).toEqual({ code: 4505, reason: 'protocol_error' });
  });

  test('more of them than the bound end in 4505', async () => {
    const model = createModel({ ...LIMITS, framesInBurst: 1_000, heldFrameBytesMax: 200 });
    const socket = model.connect(1_000_000);
    send(socket, { op: 'subscribe', symbols: ['AA'], resume: { since: '2001-01-01T00:00:00Z' } });
    for (let n = 0; n < 10; n += 1) send(socket, { op: 'subscribe', symbols: ['AB'] });
    expect(socket.closed).toEqual({ code: 4505, reason: 'protocol_error' });
    await turn();
    expect(socket.connection!.outbox.queueBytes).toBe(0);
  });
});
