import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { fullBucket } from '../../../lib/rate/token-bucket.ts';
import { waitFor } from '../../../testing/wait.ts';
import type { Attempter } from '../attempt.ts';
import type { DeliveryChange } from '../delivery-changes.ts';
import { createCircuitBreaker } from '../endpoints/circuit-breaker.ts';
import type { RegisteredEndpoint } from '../endpoints/registered-endpoint.ts';
import { DeliveryQueue } from './delivery-queue.ts';
import type { QueuedPill } from './queued-pill.ts';

const endpoint = {
  id: 'whe_1',
  settings: { ratePerS: 1_000, maxAgeS: 3_600 },
  failingSinceMs: undefined,
  breaker: createCircuitBreaker(),
  bucket: fullBucket(0),
  receivesPills: () => true,
  hasRoom: () => true,
} as unknown as RegisteredEndpoint;

function pillOf(partition: number, offset: number, lost: ReadonlySet<number>, settled: string[]) {
  const receivedAt = Date.now() * 1_000;
  const pill: QueuedPill = {
    encoded: { json: '{}', bytes: 2, partition, offset, receivedAt },
    isAlone: false,
    owner: `me/${partition}`,
    isOurs: () => !lost.has(partition),
    settle: () => settled.push(`${partition}-${offset}`),
  };
  return pill;
}

test('when a message is fenced for one partition, its pills of other partitions are still sent', async () => {
  const lost = new Set<number>();
  const settled: string[] = [];
  const sent: string[] = [];
  const stored = new Map<string, readonly string[]>();
  const attempter = {
    async attempt(_: RegisteredEndpoint, message: { id: string }) {
      const [, cursor] = /_(\d+-\d+)$/.exec(message.id) ?? [];
      sent.push(...(cursor === undefined ? stored.get(message.id)! : [cursor]));
      await sleep(5);
      return { kind: 'delivered' };
    },
  } as unknown as Attempter;
  const writer = {
    async apply(change: DeliveryChange) {
      if (change.kind !== 'store') return true;
      const { message, joined } = change.delivery;
      // As PostgreSQL reports it: another dispatcher has taken partition 1.
      if (joined.some(({ partition }) => partition === 1)) {
        lost.add(1);
        return false;
      }
      const all = joined.flatMap(({ partition, first, last }) =>
        Array.from({ length: last - first + 1 }, (_, n) => `${partition}-${first + n}`),
      );
      stored.set(message.id, all);
      return true;
    },
    isHealthy: () => true,
    close: async () => {},
  };
  const queue = new DeliveryQueue(endpoint, {
    epoch: 'e',
    attempter,
    writer,
    share: () => 1,
    nowMs: () => performance.now(),
  });
  for (let offset = 0; offset < 100; offset += 1) {
    queue.add(pillOf(0, offset, lost, settled));
    queue.add(pillOf(1, offset, lost, settled));
  }
  const ours = Array.from({ length: 100 }, (_, offset) => `0-${offset}`);
  await waitFor('all of partition 0 to be sent', () => {
    const seen = new Set(sent);
    return ours.every((cursor) => seen.has(cursor)) || `${seen.size} sent`;
  });
  // Each once, and settled only after it was sent or stored.
  expect(sent.filter((cursor) => cursor.startsWith('0-')).sort()).toEqual([...ours].sort());
  await waitFor('all pills to be settled', () => new Set(settled).size === 200);
  await queue.close();
});

test('pills that cannot be stored when the process stops are not settled', async () => {
  const settled: string[] = [];
  const breaker = createCircuitBreaker();
  breaker.restUntil(performance.now() + 60_000);
  const writer = { apply: async () => false, isHealthy: () => false, close: async () => {} };
  const queue = new DeliveryQueue({ ...endpoint, breaker } as RegisteredEndpoint, {
    epoch: 'e',
    attempter: {} as Attempter,
    writer,
    share: () => 1,
    nowMs: () => performance.now(),
  });
  for (let offset = 0; offset < 10; offset += 1) {
    queue.add(pillOf(0, offset, new Set(), settled));
  }
  await queue.close();
  expect(settled).toEqual([]);
});
