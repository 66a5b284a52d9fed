import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EffectivePill } from '../../../domain/order/judge.ts';
import { openProducer } from '../../../lib/kafka/producer.ts';
import { silentLog } from '../../../lib/log/log.ts';
import { createEncoder } from '../../../schemas/avro.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill, openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { waitFor } from '../../../testing/wait.ts';
import { LIMITS } from '../limits.ts';
import { CHAOS_SYMBOL } from '../protocol/subscription.ts';
import { openLogFeed } from './log-feed.ts';

let namespace: Namespace;
let writer: PillWriter;

beforeAll(async () => {
  // One partition, so that a mistake would affect all symbols.
  namespace = await createNamespace({ partitions: 1 });
  writer = await openPillWriter(namespace);
});

afterAll(async () => {
  await writer?.close();
});

async function follow(onPills: (pills: readonly EffectivePill[]) => void = () => undefined) {
  const handed: EffectivePill[] = [];
  const outcomes: string[] = [];
  const { client, schemas, settings, name } = namespace;
  const feed = await openLogFeed({
    ...{ client, schemas, settings, namespace: name, log: silentLog, replayBufferPillsMax: 1_000 },
    signal: new AbortController().signal,
    onPills(pills) {
      handed.push(...pills);
      onPills(pills);
    },
    pauseMs: () => 0,
    onRecord: (outcome) => outcomes.push(outcome),
    onFatal: (error) => expect.fail(error.message),
  });
  await feed.caughtUp;
  return { feed, handed, outcomes };
}

/** Writes the row that the latest processor would have written. */
async function writeLatest(symbol: string, offset: number, prevOffset: number): Promise<void> {
  const { name, settings, schemas, client } = namespace;
  const encode = createEncoder('latest-pill', await schemas.register('latest'));
  const { kind: _, ...pill } = makePill({ symbol, id: `${symbol}-${offset}` });
  const producer = await openProducer(client);
  const value = encode({
    ...{ ...pill, received_at: pill.timestamp, epoch: settings.epoch, backfill: false },
    ...{ offset, last_offset: offset, processed_offset: offset, prev_offset: prevOffset },
  });
  await producer.produce([{ topic: topicName(name, 'latest'), partition: 0, key: symbol, value }]);
  await producer.close();
}

test('pills sent as TEST:CHAOS are judged, but appear in no snapshot, replay or frame', async () => {
  const { feed, handed, outcomes } = await follow();
  const made = ['AA', CHAOS_SYMBOL, 'AA', CHAOS_SYMBOL, 'AB', 'AA', CHAOS_SYMBOL].map((symbol) =>
    makePill({ symbol }),
  );
  for (const pill of made) await writer.write([pill]);
  await writer.write([made[1]!]);
  await waitFor('all records to be judged', () => outcomes.length === made.length + 1);
  // These pills have effect, a repeat is recognised, and the position moves past them.
  expect(outcomes).toEqual([...made.map(() => 'effect'), 'repeat']);
  expect(feed.latestPills.offsets.get(0)).toBe(made.length);
  const others = made.filter(({ symbol }) => symbol !== CHAOS_SYMBOL).map(({ id }) => id);
  expect(handed.map(({ id }) => id)).toEqual(others);
  expect(handed.map(({ offset, prev }) => [offset, prev])).toEqual([
    [0, null],
    [2, 0],
    [4, null],
    [5, 2],
  ]);
  expect([...feed.latestPills.rows()].map(({ pill }) => pill.symbol)).toEqual(['AA', 'AB']);
  const replayed = feed.replayBuffer.after(new Map([[0, -1]]), () => true, 1_000)!;
  expect(replayed.map(({ id }) => id)).toEqual(others);
  await feed.close();

  // A feed that starts later finds them in the latest topic, and in the log after it.
  await writeLatest('AA', 2, 0);
  await writeLatest(CHAOS_SYMBOL, 3, 1);
  const later = await follow();
  expect([...later.feed.latestPills.rows()].map(({ pill }) => pill.symbol)).toEqual(['AA', 'AB']);
  expect(later.handed.map(({ offset, prev }) => [offset, prev])).toEqual([
    [4, null],
    [5, 2],
  ]);
  await later.feed.close();
});

test('pills that piled up are handed over in bursts, each in a turn of its own', async () => {
  const count = 3_000;
  const made = Array.from({ length: count }, (_, n) => makePill({ symbol: `P${n % 7}` }));
  await writer.write(made);
  let inTurn = 0;
  let inTurnMax = 0;
  const { feed, handed } = await follow((pills) => {
    if (inTurn === 0) {
      setImmediate(() => {
        inTurn = 0;
      });
    }
    inTurn += pills.length;
    inTurnMax = Math.max(inTurnMax, inTurn);
  });
  const own = () => handed.filter(({ symbol }) => symbol.startsWith('P'));
  await waitFor('all pills', () => own().length === count || `${own().length}`);
  expect(own().map(({ id }) => id)).toEqual(made.map(({ id }) => id));
  expect(inTurnMax).toBeLessThanOrEqual(LIMITS.burstPillsMax);
  expect(inTurnMax).toBeGreaterThan(LIMITS.burstPillsMax / 2);
  await feed.close();
});
