import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Log, silentLog } from './log.ts';
import { repeat } from './repeat.ts';
import { waitFor } from './testing/wait.ts';

test('runs follow each other and never overlap, however long one takes', async () => {
  let running = 0;
  let mostAtOnce = 0;
  let runs = 0;
  const repetition = repeat({
    ...{ name: 'test', everyMs: 1, log: silentLog },
    async run() {
      running += 1;
      mostAtOnce = Math.max(mostAtOnce, running);
      await sleep(10);
      running -= 1;
      runs += 1;
    },
  });
  await waitFor('five runs', () => runs >= 5);
  await repetition.close();
  expect([mostAtOnce, running]).toEqual([1, 0]);
});

test('the close waits for the run that is on its way, tells it, and lets no other begin', async () => {
  let begun = 0;
  let ended = 0;
  const repetition = repeat({
    ...{ name: 'test', everyMs: 1, log: silentLog },
    async run(signal) {
      begun += 1;
      await sleep(60_000, undefined, { signal }).catch(() => undefined);
      await sleep(20);
      ended += 1;
    },
  });
  await waitFor('a run', () => begun === 1);
  await Promise.all([repetition.close(), repetition.close()]);
  expect([begun, ended]).toEqual([1, 1]);
});

test('a close before the first run is at once', async () => {
  let begun = 0;
  const repetition = repeat({
    ...{ name: 'test', everyMs: 3_600_000, log: silentLog },
    async run() {
      begun += 1;
    },
  });
  await repetition.close();
  expect(begun).toBe(0);
});

test('a run that fails is logged, and the next one comes', async () => {
  const warned: string[] = [];
  const log = { warn: (_: object, text: string) => warned.push(text) } as unknown as Log;
  let runs = 0;
  const repetition = repeat({
    ...{ name: 'renewals', everyMs: 1, jitter: 0.5, log },
    async run() {
      runs += 1;
      if (runs === 1) throw new Error('the database is away');
    },
  });
  await waitFor('the next run', () => runs >= 2);
  await repetition.close();
  expect(warned).toEqual([expect.stringContaining('renewals')]);
});
