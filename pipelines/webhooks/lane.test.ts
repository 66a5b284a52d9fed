import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { waitFor } from '../../lib/testing/wait.ts';
import type { Attempter } from './attempt.ts';
import type { Listener } from './audience.ts';
import { createBreaker } from './breaker.ts';
import type { Change } from './changes.ts';
import { createLane, type LanePill } from './lane.ts';
import { createTokens } from './rate.ts';

const listener = {
  ...{ id: 'whe_1', endpoint: { ratePerS: 1_000, maxAgeS: 3_600 }, failingSinceMs: undefined },
  ...{ breaker: createBreaker(), tokens: createTokens() },
  wantsPills: () => true,
  hasRoom: () => true,
} as unknown as Listener;

function pillOf(partition: number, offset: number, lost: ReadonlySet<number>, settled: string[]) {
  const receivedAt = Date.now() * 1_000;
  const pill: LanePill = {
    text: { json: '{}', bytes: 2, partition, offset, receivedAt },
    ...{ isAlone: false, owner: `me/${partition}` },
    isOurs: () => !lost.has(partition),
    settle: () => settled.push(`${partition}-${offset}`),
  };
  return pill;
}

test('pills of a message that is fenced for one partition are sent all the same for the others', async () => {
  const lost = new Set<number>();
  const settled: string[] = [];
  const sent: string[] = [];
  const kept = new Map<string, readonly string[]>();
  const attempter = {
    async attempt(_: Listener, message: { id: string }) {
      const [, cursor] = /_(\d+-\d+)$/.exec(message.id) ?? [];
      sent.push(...(cursor === undefined ? kept.get(message.id)! : [cursor]));
      await sleep(5);
      return { kind: 'delivered' };
    },
  } as unknown as Attempter;
  const keeper = {
    async apply(change: Change) {
      if (change.kind !== 'keep') return true;
      const { message, joined } = change.kept;
      // As PostgreSQL says it: partition 1 has gone to another one.
      if (joined.some(({ partition }) => partition === 1)) {
        lost.add(1);
        return false;
      }
      const all = joined.flatMap(({ partition, first, last }) =>
        Array.from({ length: last - first + 1 }, (_, n) => `${partition}-${first + n}`),
      );
      kept.set(message.id, all);
      return true;
    },
    isHealthy: () => true,
    close: async () => {},
  };
  const lane = createLane(listener, {
    ...{ epoch: 'e', attempter, keeper },
    share: () => 1,
    nowMs: () => performance.now(),
  });
  for (let offset = 0; offset < 100; offset += 1) {
    lane.offer(pillOf(0, offset, lost, settled));
    lane.offer(pillOf(1, offset, lost, settled));
  }
  const ours = Array.from({ length: 100 }, (_, offset) => `0-${offset}`);
  await waitFor('all of partition 0 to be sent', () => {
    const seen = new Set(sent);
    return ours.every((place) => seen.has(place)) || `${seen.size} sent`;
  });
  // Each once, and settled only after it was sent or kept.
  expect(sent.filter((place) => place.startsWith('0-')).sort()).toEqual([...ours].sort());
  await waitFor('all to be settled', () => new Set(settled).size === 200);
  await lane.close();
});

test('what cannot be kept when the process stops is not settled', async () => {
  const settled: string[] = [];
  const breaker = createBreaker();
  breaker.restUntil(performance.now() + 60_000);
  const keeper = { apply: async () => false, isHealthy: () => false, close: async () => {} };
  const lane = createLane({ ...listener, breaker } as Listener, {
    ...{ epoch: 'e', attempter: {} as Attempter, keeper },
    share: () => 1,
    nowMs: () => performance.now(),
  });
  for (let offset = 0; offset < 10; offset += 1) {
    lane.offer(pillOf(0, offset, new Set(), settled));
  }
  await lane.close();
  expect(settled).toEqual([]);
});
