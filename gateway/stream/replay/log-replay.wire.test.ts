// The resumer over a real log with a replay buffer of a few pills: no client, no server.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchOffsetsAt } from '../../../lib/kafka/topics.ts';
import { silentLog } from '../../../lib/log/log.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { LIMITS } from '../limits.ts';
import { type LogFeed, openLogFeed } from '../log/log-feed.ts';
import { readSpans } from '../log/span-reader.ts';
import { planReplay } from './replay-plan.ts';
import { createResumer, type Resumer } from './resume.ts';

const BUFFER_PILLS = 20;

let namespace: Namespace;
let writer: PillWriter;
let feed: LogFeed;
let resumer: Resumer;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  const { client, schemas, settings, name } = namespace;
  const shared = { client, schemas, settings, log: silentLog };
  const topic = topicName(name, 'pills');
  feed = await openLogFeed({
    ...shared,
    namespace: name,
    replayBufferPillsMax: BUFFER_PILLS,
    signal: new AbortController().signal,
    onPills: () => undefined,
    pauseMs: () => 0,
    onRecord: () => undefined,
    onFatal: (error) => expect.fail(error.message),
  });
  const { latestPills, replayBuffer } = feed;
  const reader = { ...shared, topic, latestPills };
  resumer = createResumer({
    latestPills,
    replayBuffer,
    limits: LIMITS,
    partitions: () => feed.partitions,
    offsetsAt: (timeMs) => fetchOffsetsAt(client, topic, timeMs),
    logStarts: async () => new Map(),
    readSpans: (spans, onPill, signal) => readSpans(reader, spans, onPill, signal),
    onError: (error) => expect.fail(String(error)),
  });
});

afterAll(async () => {
  resumer?.close();
  await feed?.close();
  await writer?.close();
});

test('if the replay buffer is full, the log is read up to the start of the buffer', async () => {
  const symbols = ['L1.T', 'L2.T', 'L3.T', 'L4.T', 'L5.T'];
  const ids: string[] = [];
  const write = async (count: number) => {
    const pills = Array.from({ length: count }, (_, n) =>
      makePill({ symbol: symbols[n % symbols.length]! }),
    );
    await writer.write(pills);
    ids.push(...pills.map(({ id }) => id));
  };
  await write(10);
  await waitFor('ten', () => [...feed.latestPills.rows()].length === symbols.length);
  await write(500);
  const read = () =>
    [...feed.latestPills.offsets.values()].reduce((sum, offset) => sum + offset + 1, 0);
  await waitFor('all records to be read', () => read() === 510 || String(read()));
  expect(feed.replayBuffer.room).toBe(0);

  // New pills arrive, and the buffer evicts others, during the reading.
  let isDone = false;
  const writing = (async () => {
    while (!isDone) await write(50);
  })();
  const subscription = { mode: 'all', backfill: false, filter: undefined } as const;
  const replay = async (named: readonly string[]) => {
    const request = { symbols: named, named: new Map(), subscription };
    const position = { epoch: namespace.settings.epoch, offsets: new Map() };
    const outcome = await resumer.resume(
      { kind: 'position', position },
      { accountId: 'acc_test', ...request },
    );
    const plan = planReplay({ ...request, outcome }, feed.replayBuffer, LIMITS.replayPillsMax);
    if (plan.recovered !== true) expect.fail(JSON.stringify(plan));
    return { pills: plan.pills, position: new Map(feed.latestPills.offsets) };
  };
  const [all, one] = await Promise.all([replay(['*']), replay(['L2.T'])]);
  isDone = true;
  await writing;
  for (const { pills, position } of [all, one]) {
    const cursors = pills.map(({ partition, offset }) => `${partition}-${offset}`);
    expect(new Set(cursors).size).toBe(cursors.length);
    for (const { partition, offset } of pills) {
      expect(offset).toBeLessThanOrEqual(position.get(partition)!);
    }
  }
  // Exactly the log up to the position, in order.
  for (const [partition, last] of all.position) {
    const own = all.pills.filter((pill) => pill.partition === partition);
    expect(own.map(({ offset }) => offset)).toEqual(Array.from({ length: last + 1 }, (_, n) => n));
  }
  expect(one.pills.length).toBeGreaterThan(100);
  expect(one.pills.every(({ symbol, late }) => symbol === 'L2.T' && !late)).toBe(true);
  for (let at = 1; at < one.pills.length; at += 1) {
    expect(one.pills[at]!.prev).toBe(one.pills[at - 1]!.offset);
  }
  const known = new Set(ids);
  expect(all.pills.every(({ id }) => known.has(id))).toBe(true);
});
