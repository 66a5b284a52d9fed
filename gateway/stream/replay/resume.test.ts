import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createModel, type FakeSocket, type Model } from '../testing/model.ts';
import { framesOf, type GotPill, pillsOf } from '../testing/stream-client.ts';
import { AVRO_CODEC } from '../wire/avro-codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';

const SYMBOLS = ['AA', 'AB', 'AC', 'TEST:D'];

const pillOf = fc.record({
  symbol: fc.constantFrom(...SYMBOLS),
  late: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  backfill: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
});
const requestOf = fc.record({
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

/** Waits for the promises of this turn. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a client that resumes from a position', () => {
  test.each([JSON_CODEC, AVRO_CODEC])(
    'gets exactly the matching pills after it, in order and marked, then live pills ($name)',
    (codec) => {
      fc.assert(
        fc.property(
          fc.array(pillOf, { maxLength: 60, size: 'max' }),
          fc.array(pillOf, { maxLength: 60, size: 'max' }),
          fc.array(pillOf, { maxLength: 20 }),
          requestOf,
          fc.constantFrom(0, 700, 1_000_000),
          (before, missed, live, request, windowBytes) => {
            const model = createModel({ frameOutBytesMax: 900 });
            model.publish(before);
            const resume = model.latestPills.position();
            model.publish(missed);
            const socket = model.connect(windowBytes, codec);
            send(socket, { op: 'subscribe', id: '1', ...request, resume });
            model.publish(live);
            readAll(model, socket);

            const matching = model.log.slice(before.length).filter((pill) => {
              const named = request.symbols.includes(pill.symbol);
              const every = request.symbols[0] === '*' && !pill.symbol.startsWith('TEST:');
              return (
                (named || every) &&
                (request.backfill || !pill.backfill) &&
                !(request.mode === 'latest' && pill.late) &&
                (request.filter === undefined || pill.confidence >= 4)
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
            // Replayed pills before live ones, without duplicates.
            expect(got.findLastIndex((pill) => pill.replayed)).toBe(again.length - 1);
            expect(new Set(cursorsOf(got)).size).toBe(got.length);
            if (request.mode === 'all') expect(got).toHaveLength(matching.length);
            expect(framesOf(socket.frames, 'gap')).toEqual([]);
            expect(framesOf(socket.frames, 'snapshot')).toEqual([]);
            socket.connection!.sendHeartbeat();
            const beats = framesOf(socket.frames, 'heartbeat');
            expect(beats.at(-1)!.sent).toBe(got.length);
          },
        ),
        { numRuns: 300 },
      );
    },
  );

  test('starts at the beginning of a partition that the position omits', () => {
    const model = createModel();
    model.publish([{ symbol: 'AA' }, { symbol: 'AB' }]);
    const socket = model.connect(1_000_000);
    send(socket, { op: 'subscribe', symbols: ['*'], resume: 'e1:0-0' });
    const got = cursorsOf(socket.frames.flatMap(pillsOf));
    expect(got).toEqual(['1-0']);
  });
});

describe('a refused resume is reported, never partial, and followed by a fresh snapshot', () => {
  const LIMITS = { replayBufferPillsMax: 10, replayPillsMax: 6, replayWaitMs: 0 };

  async function resumed(
    resume: unknown,
    symbols = ['AA', 'AB'],
    isInResumeWindow: (partition: number, after: number) => boolean = () => true,
  ) {
    const model = createModel(LIMITS);
    Object.assign(model.deps, { isInResumeWindow });
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
    ['of an unknown partition', 'e1:0-1,7-3', 'partition_unknown'],
    ['that has expired', 'e1:0-2,1-9', 'position_expired'],
    ['ahead of the log', 'e1:0-10,1-9', 'position_ahead'],
    ['with more pills after it than one replay carries', 'e1:0-4,1-4', 'too_many_missed'],
  ])('%s', async (_what, resume, reason) => {
    const socket = await resumed(resume);
    const [subscribed] = framesOf(socket.frames, 'subscribed');
    expect(subscribed).toMatchObject({ recovered: false, reason, replaying: 0 });
    expect(subscribed!.oldest).toBe('e1:0-4,1-4');
    const types = socket.frames.map(({ type }) => type).filter((type) => type !== 'gap');
    expect(types).toEqual(['welcome', 'subscribed', 'snapshot', 'live']);
    expect(socket.frames.flatMap(pillsOf)).toEqual([]);
  });

  test('gap frames name the missing pills, with the call that returns them', async () => {
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

  test('gaps from before the resume window are filled by calls that count against the quota', async () => {
    const isInResumeWindow = (partition: number, after: number) => partition === 0 && after >= 2;
    const gapsAfter = async (resume: string) => {
      const { frames } = await resumed(resume, ['*'], isInResumeWindow);
      return framesOf(frames, 'gap').map(({ fill, fill_free }) => [fill, fill_free]);
    };
    const counted = ['/api/pills?epoch=e1&until=1-9', false];
    expect(await gapsAfter('e1:')).toEqual([counted, ['/api/pills?epoch=e1&until=0-9', false]]);
    expect(await gapsAfter('e1:0-2')).toEqual([
      counted,
      ['/api/pills?epoch=e1&after=0-2&until=0-9&grant=granted', true],
    ]);
  });

  test('frames that arrive meanwhile are queued and answered in order', async () => {
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
    const answered = socket.frames
      .filter(({ type }) => ['subscribed', 'unsubscribed', 'pong'].includes(type))
      .map((frame) => (frame as { id?: string }).id);
    expect(answered).toEqual(['4', '1', '2', '3']);
  });

  test('no position is reported beyond the start of the resume', async () => {
    const model = createModel();
    model.publish([{ symbol: 'AA' }, { symbol: 'AB' }, { symbol: 'AA' }]);
    const ahead = model.latestPills.position();
    for (const [resume, position] of [
      [{ since: '2001-01-01T00:00:00Z' }, 'e1:'],
      // Ahead of this instance in one partition: the resume waits for it.
      ['e1:0-99,1-0', 'e1:0-0,1-0'],
    ] as const) {
      const socket = model.connect(1_000_000);
      send(socket, { op: 'subscribe', symbols: ['AA'], resume });
      socket.connection!.sendHeartbeat();
      socket.connection!.drain(0, 1_000);
      expect(framesOf(socket.frames, 'heartbeat')[0]!.position).toBe(position);
      expect(framesOf(socket.frames, 'drain')[0]!.position).toBe(position);
      expect(position).not.toBe(ahead);
    }
  });

  test('frames queued behind a second resume still count', async () => {
    const model = createModel({ ...LIMITS, framesInBurst: 1_000, heldFrameBytesMax: 400 });
    const socket = model.connect(1_000_000);
    const slow = { op: 'subscribe', symbols: ['AA'], resume: { since: '2001-01-01T00:00:00Z' } };
    send(socket, slow);
    send(socket, slow);
    for (let n = 0; n < 7; n += 1) send(socket, { op: 'subscribe', symbols: ['AB'] });
    expect(socket.closed).toBeUndefined();
    // The first is answered; the second waits, with seven frames behind it.
    await turnUntil(() => framesOf(socket.frames, 'subscribed').length === 1);
    for (let n = 0; n < 6; n += 1) send(socket, { op: 'subscribe', symbols: ['AB'] });
    expect(socket.closed).toEqual({ code: 4505, reason: 'protocol_error' });
  });

  test('more queued frames than the bound end in 4505', async () => {
    const model = createModel({ ...LIMITS, framesInBurst: 1_000, heldFrameBytesMax: 200 });
    const socket = model.connect(1_000_000);
    send(socket, { op: 'subscribe', symbols: ['AA'], resume: { since: '2001-01-01T00:00:00Z' } });
    for (let n = 0; n < 10; n += 1) send(socket, { op: 'subscribe', symbols: ['AB'] });
    expect(socket.closed).toEqual({ code: 4505, reason: 'protocol_error' });
    await turn();
    expect(socket.connection!.outbox.queueBytes).toBe(0);
  });
});
