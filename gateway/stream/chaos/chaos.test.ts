import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../../lib/root.ts';
import { QUIET_REASONS } from '../../../lib/signal/silence.ts';
import type { Connection } from '../live/connection.ts';
import type { ResumeRequest } from '../live/protocol.ts';
import type { ResumeDesk } from '../past/resume.ts';
import { framesOf, pillsOf } from '../testing/client.ts';
import { faultOfFrame } from '../testing/frame-check.ts';
import { createModel, type FakeSocket } from '../testing/model.ts';
import { AVRO_CODEC } from '../wire/avro-codec.ts';
import type { Codec } from '../wire/codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';
import { createChaos, withoutChaos } from './chaos.ts';
import { CHAOS_SCHEDULE, CHAOS_STEP_MS, CHAOS_STEPS, CHAOS_SYMBOL } from './chaos-schedule.ts';

const PARTITION = 2;
/** The wall's clock at the model's zero: a cycle begins a step later. */
const START_MS = 1_800_000_000_000 - CHAOS_STEP_MS;
const FIRST = 1_800_000_000_000 / CHAOS_STEP_MS;
const cursor = (step: number) => `${PARTITION}-${FIRST + step}`;

function createStage() {
  const model = createModel();
  const connections = new Set<Connection>();
  const chaos = createChaos({
    ...{ hub: model.hub, partition: PARTITION },
    connections: () => connections,
    nowMicros: () => (START_MS + model.nowMs) * 1000,
  });
  chaos.tick();
  return {
    model,
    chaos,
    connect(
      symbols: readonly string[],
      fields: object = {},
      codec: Codec = JSON_CODEC,
    ): FakeSocket {
      const socket = model.connect(1e12, codec);
      connections.add(socket.connection!);
      const frame = { op: 'subscribe', symbols, ...fields };
      socket.connection!.receive(Buffer.from(JSON.stringify(frame)), false);
      return socket;
    },
    /** Plays steps. */
    play(steps: number, inEach: () => void = () => undefined) {
      for (let step = 0; step < steps; step += 1) {
        for (let tick = 0; tick < 5; tick += 1) {
          model.pass(CHAOS_STEP_MS / 5);
          chaos.tick();
        }
        inEach();
        model.pass(0);
      }
    },
  };
}

/** What a client was told, short: pills by their step, all else by type. */
function told({ frames, closed }: FakeSocket): string[] {
  for (const frame of frames) expect(faultOfFrame(frame)).toBeUndefined();
  const texts = frames.flatMap((frame) => {
    const pills = pillsOf(frame);
    if (pills.length === 0) return [frame.type];
    return pills.map(({ id, late }) => `${Number(id.slice(6)) - FIRST}${late ? ' late' : ''}`);
  });
  return closed === undefined ? texts : [...texts, String(closed.code)];
}

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => String(from + n));
const HELLO = ['welcome', 'subscribed', 'live'];

describe.each([JSON_CODEC, AVRO_CODEC])('a cycle in $name', (codec) => {
  test('to the first close, then to the second, as the schedule says', () => {
    const { connect, play } = createStage();
    const first = connect([CHAOS_SYMBOL], { snapshot: false }, codec);
    play(50);
    expect(told(first)).toEqual([
      ...[...HELLO, 'gap', ...range(0, 9), 'gap', ...range(13, 19), '19', ...range(20, 29)],
      ...['30 late', ...range(31, 40), 'drain', ...range(41, 44), 'heartbeat', '4000'],
    ]);
    const second = connect([CHAOS_SYMBOL], { snapshot: false }, codec);
    play(20);
    expect(told(second)).toEqual([...[...HELLO, 'gap', ...range(50, 55), 'error', '4001']]);
    const third = connect([CHAOS_SYMBOL], { snapshot: false }, codec);
    play(10);
    expect(told(third)).toEqual([...HELLO, 'gap', 'gap', ...range(73, 79)]);
  });
});

test('each misbehaviour is told in the words of the protocol', () => {
  const { connect, play } = createStage();
  const socket = connect([CHAOS_SYMBOL], { snapshot: false });
  play(45);
  const pills = socket.frames.flatMap(pillsOf);
  const at = (step: number) => pills.filter((pill) => pill.cursor === cursor(step));
  const reason = { reason: 'chaos', fill: null, fill_free: false, symbols: [CHAOS_SYMBOL] };
  expect(framesOf(socket.frames, 'gap')).toEqual([
    { type: 'gap', after: null, until: cursor(-1), ...reason },
    { type: 'gap', after: cursor(9), until: cursor(12), ...reason },
  ]);
  expect(at(0)[0]!.prev).toBe(cursor(-1));
  expect(at(13)[0]!.prev).toBe(cursor(12));
  const [once, again] = at(19).map(({ cursor, prev, id }) => [cursor, prev, id]);
  expect(again).toEqual(once);
  expect(at(30)[0]).toMatchObject({ late: true, prev: cursor(29) });
  expect(at(31)[0]!.prev).toBe(cursor(30));
  expect(framesOf(socket.frames, 'drain')[0]).toMatchObject({ reconnect_after_ms: 500 });
  expect(socket.closed).toEqual({ code: 4000, reason: 'drain' });
});

test('latest mode leaves the late pill out, a filter keeps pills away, and both are counted', () => {
  const { connect, play } = createStage();
  const latest = connect([CHAOS_SYMBOL], { mode: 'latest', snapshot: false });
  const filtered = connect([CHAOS_SYMBOL], { filter: { min_spread: 0.4 }, snapshot: false });
  play(46);
  expect(latest.frames.flatMap(pillsOf).some(({ late }) => late)).toBe(false);
  expect(framesOf(latest.frames, 'heartbeat').at(-1)).toMatchObject({ skipped: 1 });
  expect(filtered.frames.flatMap(pillsOf).map(({ id }) => id)).toEqual(
    range(40, 44).map((step) => `chaos-${FIRST + Number(step)}`),
  );
});

test('no other connection notices it, and its own other symbols lose nothing', () => {
  const { model, connect, play } = createStage();
  const others = [['*'], ['AA'], ['TEST:OTHER']].map((symbols) => connect(symbols));
  const both = connect([CHAOS_SYMBOL, 'AA']);
  const star = connect(['*']);
  star.connection!.receive(
    Buffer.from(JSON.stringify({ op: 'subscribe', symbols: [CHAOS_SYMBOL] })),
    false,
  );
  play(60, () => model.publish([{ symbol: 'AA' }, { symbol: 'TEST:OTHER' }]));
  for (const other of others) {
    expect(other.closed).toBeUndefined();
    expect(other.frames.map(({ type }) => type)).not.toContain('gap');
    expect(other.frames.flatMap(pillsOf).map(({ symbol }) => symbol)).not.toContain(CHAOS_SYMBOL);
    expect(other.frames.flatMap(pillsOf)).toHaveLength(60);
  }
  for (const player of [both, star]) {
    expect(player.closed?.code).toBe(4000);
    // All up to the last position has come, and nothing after it.
    const own = player.frames.flatMap(pillsOf).filter(({ symbol }) => symbol === 'AA');
    expect(own.length).toBeGreaterThan(40);
    const { position } = framesOf(player.frames, 'heartbeat').at(-1)!;
    expect(position).toContain(own.at(-1)!.cursor);
    expect(position).not.toContain(`${PARTITION}-`);
  }
  expect(model.board.get(CHAOS_SYMBOL)).toBeUndefined();
  expect([...model.board.offsets.keys()]).not.toContain(PARTITION);
});

test('a chain begins anew for who comes back, and after a stall', () => {
  const { model, chaos, connect, play } = createStage();
  const socket = connect([CHAOS_SYMBOL], { snapshot: false });
  play(3);
  const send = (op: string) =>
    socket.connection!.receive(Buffer.from(JSON.stringify({ op, symbols: [CHAOS_SYMBOL] })), false);
  send('unsubscribe');
  play(2);
  send('subscribe');
  play(2);
  model.pass(20 * CHAOS_STEP_MS);
  chaos.tick();
  model.pass(0);
  expect(told(socket).filter((text) => text === 'gap' || Number(text) >= 0)).toEqual([
    ...['gap', '0', '1', '2', 'gap', '5', '6', 'gap', '26'],
  ]);
});

test('nobody there: nothing is made; a clock that was set back begins anew', () => {
  const published: unknown[] = [];
  let nowMs = 1_800_000_000_000;
  const seats: never[] = [];
  const chaos = createChaos({
    hub: {
      publish: (pills) => published.push(...pills),
      flush: () => undefined,
      seatsNaming: () => seats,
    },
    partition: PARTITION,
    connections: () => [],
    nowMicros: () => nowMs * 1000,
  });
  for (let n = 0; n < 100; n += 1) {
    nowMs += 100;
    chaos.tick();
  }
  expect(published).toEqual([]);
  seats.push({ outbox: { push: () => undefined } } as never);
  nowMs += CHAOS_STEP_MS;
  chaos.tick();
  nowMs -= 3_600_000;
  chaos.tick();
  nowMs += CHAOS_STEP_MS;
  chaos.tick();
  expect(published).toHaveLength(2);
});

test('a position made from cursors resumes all other symbols', () => {
  const asked: (ResumeRequest | undefined)[] = [];
  const desk: ResumeDesk = {
    reach(request) {
      asked.push(request);
      return { kind: 'nothing' };
    },
    close: () => undefined,
  };
  const { reach } = withoutChaos(desk, PARTITION);
  const position = {
    epoch: 'e1',
    offsets: new Map([
      [0, 5],
      [PARTITION, 9],
    ]),
  };
  const since = { kind: 'since', since: 7 } as const;
  const subscription = { mode: 'all', backfill: false, filter: undefined } as const;
  const asker = { accountId: 'acc_test', symbols: ['AA'], named: new Map(), subscription };
  reach({ kind: 'position', position }, asker);
  reach(since, asker);
  reach(undefined, asker);
  expect(asked).toEqual([
    { kind: 'position', position: { epoch: 'e1', offsets: new Map([[0, 5]]) } },
    since,
    undefined,
  ]);
});

describe('README.md', () => {
  const text = readFileSync(path.join(packageRoot, 'gateway', 'stream', 'README.md'), 'utf8');
  const rows = [...text.matchAll(/^\| ([\d, ]+|others) \| `(\w+)` \| (.+) \|$/gm)];

  test('tells the schedule that is played', () => {
    const played = rows.flatMap(([, steps, kind]) =>
      steps === 'others' ? [] : steps!.split(', ').map((step) => [step, kind]),
    );
    expect(Object.fromEntries(played)).toEqual(CHAOS_SCHEDULE);
    const meanings = rows.map(([, , kind, meaning]) => [kind, { meaning }]);
    expect(Object.fromEntries(meanings)).toEqual(CHAOS_STEPS);
  });

  test('tells every reason of quiet, and its examples have the documented form', () => {
    const reasons = [...text.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)];
    const meanings = reasons.map(([, reason, meaning]) => [reason, { meaning }]);
    expect(Object.fromEntries(meanings)).toEqual(QUIET_REASONS);
    const examples = text.split('\n').filter((line) => line.startsWith('{'));
    expect(examples.length).toBeGreaterThan(4);
    for (const example of examples) expect(faultOfFrame(JSON.parse(example))).toBeUndefined();
  });
});
