import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type LoadPlan, pillId } from './plan.ts';
import { createTally } from './tally.ts';

const plan = { run: 'r', pills: 3, perS: 1_000, startMicros: 0 } as LoadPlan;

test('a pill that its sender gave up and readers got takes the place of no other', async () => {
  const tally = createTally(1);
  tally.begin(plan);
  tally.take(0, pillId('r', 0), 10);
  tally.take(0, pillId('r', 1), 20);
  const report = tally.end([0]);
  // Later than a double of the last pill is waited for.
  await sleep(400);
  tally.take(0, pillId('r', 2), 30);
  expect(await report).toMatchObject({ lost: 0, doubled: 0 });
});
