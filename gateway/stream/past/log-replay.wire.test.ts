// The desk over a real log and a backlog of a few pills: no client, no server.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchOffsetsAt } from '../../../lib/kafka/topics.ts';
import { silentLog } from '../../../lib/log.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../lib/testing/pills.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { groupName, topicName } from '../../../schemas/topics.ts';
import { LIMITS } from '../limits.ts';
import { type Feed, openFeed } from './feed.ts';
import { readPast } from './past.ts';
import { planReplay } from './replay.ts';
import { createResumeDesk, type ResumeDesk } from './resume.ts';

const BACKLOG = 20;

let namespace: Namespace;
let writer: PillWriter;
let feed: Feed;
let desk: ResumeDesk;

beforeAll(async () => {
  namespace = await createNamespace();
  writer = await openPillWriter(namespace);
  const { client, schemas, settings, name } = namespace;
  const place = { client, schemas, settings, log: silentLog };
  const topic = topicName(name, 'pills');
  feed = await openFeed({
    ...{ ...place, namespace: name, backlogPillsMax: BACKLOG },
    signal: new AbortController().signal,
    onPills: () => undefined,
    pauseMs: () => 0,
    onRecord: () => undefined,
    onFatal: (error) => expect.fail(error.message),
  });
  const { board, backlog } = feed;
  const past = { ...place, topic, groupPrefix: groupName(name, 'stream-past'), board };
  desk = createResumeDesk({
    ...{ board, backlog, limits: LIMITS, partitions: () => feed.partitions },
    offsetsAt: (timeMs) => fetchOffsetsAt(client, topic, timeMs),
    begins: async () => new Map(),
    readPast: (spans, onPill, signal) => readPast(past, spans, onPill, signal),
    onError: (error) => expect.fail(String(error)),
  });
});

afterAll(async () => {
  desk?.close();
  await feed?.close();
  await writer?.close();
});

test('a full backlog is no end: the log is read up to where it begins', async () => {
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
  await waitFor('ten', () => [...feed.board.rows()].length === symbols.length);
  await write(500);
  const read = () => [...feed.board.offsets.values()].reduce((sum, offset) => sum + offset + 1, 0);
  await waitFor('all', () => read() === 510 || String(read()));
  expect(feed.backlog.room).toBe(0);

  // Pills go on coming, and memory forgetting, while it is read.
  let isDone = false;
  const writing = (async () => {
    while (!isDone) await write(50);
  })();
  const subscription = { mode: 'all', backfill: false, filter: undefined } as const;
  const come = async (named: readonly string[]) => {
    const wish = { symbols: named, named: new Map(), subscription };
    const position = { epoch: namespace.settings.epoch, offsets: new Map() };
    const reached = await desk.reach(
      { kind: 'position', position },
      { accountId: 'acc_test', ...wish },
    );
    const replay = planReplay({ ...wish, reached }, feed.backlog, LIMITS.replayPillsMax);
    if (replay.recovered !== true) expect.fail(JSON.stringify(replay));
    return { pills: replay.pills, position: new Map(feed.board.offsets) };
  };
  const [all, one] = await Promise.all([come(['*']), come(['L2.T'])]);
  isDone = true;
  await writing;
  for (const { pills, position } of [all, one]) {
    const cursors = pills.map(({ partition, offset }) => `${partition}-${offset}`);
    expect(new Set(cursors).size).toBe(cursors.length);
    for (const { partition, offset } of pills) {
      expect(offset).toBeLessThanOrEqual(position.get(partition)!);
    }
  }
  // Exactly the log up to the position, in its order.
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
}, 60_000);
