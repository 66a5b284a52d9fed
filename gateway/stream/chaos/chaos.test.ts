import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { QUIET_REASONS } from '../../../domain/market/quiet/silence.ts';
import { packageRoot } from '../../../lib/files/package-root.ts';
import type { Connection } from '../hub/stream-connection.ts';
import type { ResumeRequest } from '../protocol/parse-frame.ts';
import { CHAOS_SYMBOL } from '../protocol/subscription.ts';
import type { Resumer } from '../replay/resume.ts';
import { faultOfFrame } from '../testing/frame-check.ts';
import { createModel, type FakeSocket } from '../testing/model.ts';
import { framesOf, pillsOf } from '../testing/stream-client.ts';
import { AVRO_CODEC } from '../wire/avro-codec.ts';
import type { Codec } from '../wire/codec.ts';
import { JSON_CODEC } from '../wire/json-codec.ts';
import { createChaos, withoutChaos } from './chaos.ts';
import { CHAOS_SCHEDULE, CHAOS_STEP_MS, CHAOS_STEPS } from './chaos-schedule.ts';

const PARTITION = 2;
/** The wall clock at time zero of the model: a cycle begins one step later. */
const START_MS = 1_800_000_000_000 - CHAOS_STEP_MS;
const FIRST = 1_800_000_000_000 / CHAOS_STEP_MS;
const cursor = (step: number) => `${PARTITION}-${FIRST + step}`;

function createFixture() {
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
    /** Runs steps. */
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

/** The frames of a client in short form: pills by their step, all others by type. */
function outline({ frames, closed }: FakeSocket): string[] {
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
  test('runs to the first close, then to the second, as the schedule says', () => {
    const { connect, play } = createFixture();
    const first = connect([CHAOS_SYMBOL], { snapshot: false }, codec);
    play(50);
    expect(outline(first)).toEqual([
      ...[...HELLO, 'gap', ...range(0, 9), 'gap', ...range(13, 19), '19', ...range(20, 29)],
      ...['30 late', ...range(31, 40), 'drain', ...range(41, 44), 'heartbeat', '4000'],
    ]);
    const second = connect([CHAOS_SYMBOL], { snapshot: false }, codec);
    play(20);
    expect(outline(second)).toEqual([...[...HELLO, 'gap', ...range(50, 55), 'error', '4001']]);
    const third = connect([CHAOS_SYMBOL], { snapshot: false }, codec);
    play(10);
    expect(outline(third)).toEqual([...HELLO, 'gap', 'gap', ...range(73, 79)]);
  });
});

test('each fault is reported in the terms of the protocol', () => {
  const { connect, play } = createFixture();
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

test('latest mode leaves out the late pill, a filter rejects pills, and both are counted', () => {
  const { connect, play } = createFixture();
  const latest = connect([CHAOS_SYMBOL], { mode: 'latest', snapshot: false });
  const filtered = connect([CHAOS_SYMBOL], { filter: { min_spread: 0.4 }, snapshot: false });
  play(46);
  expect(latest.frames.flatMap(pillsOf).some(({ late }) => late)).toBe(false);
  expect(framesOf(latest.frames, 'heartbeat').at(-1)).toMatchObject({ skipped: 1 });
  expect(filtered.frames.flatMap(pillsOf).map(({ id }) => id)).toEqual(
    range(40, 44).map((step) => `chaos-${FIRST + Number(step)}`),
  );
});

test('other connections and other symbols of the connection are not affected', () => {
  const { model, connect, play } = createFixture();
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
    // Everything up to the last position has arrived, and nothing after it.
    const own = player.frames.flatMap(pillsOf).filter(({ symbol }) => symbol === 'AA');
    expect(own.length).toBeGreaterThan(40);
    const { position } = framesOf(player.frames, 'heartbeat').at(-1)!;
    expect(position).toContain(own.at(-1)!.cursor);
    expect(position).not.toContain(`${PARTITION}-`);
  }
  expect(model.latestPills.get(CHAOS_SYMBOL)).toBeUndefined();
  expect([...model.latestPills.offsets.keys()]).not.toContain(PARTITION);
});

test('a chain starts over after a reconnect and after a stall', () => {
  const { model, chaos, connect, play } = createFixture();
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
  expect(outline(socket).filter((text) => text === 'gap' || Number(text) >= 0)).toEqual([
    ...['gap', '0', '1', '2', 'gap', '5', '6', 'gap', '26'],
  ]);
});

test('without clients no pill is generated; after the clock was set back the schedule starts over', () => {
  const published: unknown[] = [];
  let nowMs = 1_800_000_000_000;
  const subscribers: never[] = [];
  const chaos = createChaos({
    hub: {
      publish: (pills) => published.push(...pills),
      flush: () => undefined,
      subscribersNaming: () => subscribers,
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
  subscribers.push({ outbox: { push: () => undefined } } as never);
  nowMs += CHAOS_STEP_MS;
  chaos.tick();
  nowMs -= 3_600_000;
  chaos.tick();
  nowMs += CHAOS_STEP_MS;
  chaos.tick();
  expect(published).toHaveLength(2);
});

test('a position assembled from cursors resumes all other symbols', () => {
  const requests: (ResumeRequest | undefined)[] = [];
  const resumer: Resumer = {
    resume(request) {
      requests.push(request);
      return { kind: 'none' };
    },
    close: () => undefined,
  };
  const { resume } = withoutChaos(resumer, PARTITION);
  const position = {
    epoch: 'e1',
    offsets: new Map([
      [0, 5],
      [PARTITION, 9],
    ]),
  };
  const since = { kind: 'since', since: 7 } as const;
  const subscription = { mode: 'all', backfill: false, filter: undefined } as const;
  const scope = { accountId: 'acc_test', symbols: ['AA'], named: new Map(), subscription };
  resume({ kind: 'position', position }, scope);
  resume(since, scope);
  resume(undefined, scope);
  expect(requests).toEqual([
    { kind: 'position', position: { epoch: 'e1', offsets: new Map([[0, 5]]) } },
    since,
    undefined,
  ]);
});

describe('README.md', () => {
  const text = readFileSync(path.join(packageRoot, 'gateway', 'stream', 'README.md'), 'utf8');
  const rows = [...text.matchAll(/^\| ([\d, ]+|others) \| `(\w+)` \| (.+) \|$/gm)];

  test('documents the schedule', () => {
    const documented = rows.flatMap(([, steps, kind]) =>
      steps === 'others' ? [] : steps!.split(', ').map((step) => [step, kind]),
    );
    expect(Object.fromEntries(documented)).toEqual(CHAOS_SCHEDULE);
    const meanings = rows.map(([, , kind, meaning]) => [kind, { meaning }]);
    expect(Object.fromEntries(meanings)).toEqual(CHAOS_STEPS);
  });

  test('documents every reason of quiet, with examples that match the schema', () => {
    const reasons = [...text.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)];
    const meanings = reasons.map(([, reason, meaning]) => [reason, { meaning }]);
    expect(Object.fromEntries(meanings)).toEqual(QUIET_REASONS);
    const examples = text.split('\n').filter((line) => line.startsWith('{'));
    expect(examples.length).toBeGreaterThan(4);
    for (const example of examples) expect(faultOfFrame(JSON.parse(example))).toBeUndefined();
  });
});
