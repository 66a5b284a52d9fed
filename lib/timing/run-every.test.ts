import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { type Log, silentLog } from '../log/log.ts';
import { runEvery } from './run-every.ts';

test('runs never overlap, however long one takes', async () => {
  let running = 0;
  let mostAtOnce = 0;
  let runs = 0;
  const repetition = runEvery({
    name: 'test',
    everyMs: 1,
    log: silentLog,
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

test('close aborts the current run, waits for its end, and starts no other', async () => {
  let begun = 0;
  let ended = 0;
  const repetition = runEvery({
    name: 'test',
    everyMs: 1,
    log: silentLog,
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

test('close before the first run returns at once', async () => {
  let begun = 0;
  const repetition = runEvery({
    name: 'test',
    everyMs: 3_600_000,
    log: silentLog,
    async run() {
      begun += 1;
    },
  });
  await repetition.close();
  expect(begun).toBe(0);
});

test('a failed run is logged, and the next run follows', async () => {
  const warned: string[] = [];
  const log = { warn: (_: object, text: string) => warned.push(text) } as unknown as Log;
  let runs = 0;
  const repetition = runEvery({
    name: 'renewals',
    everyMs: 1,
    jitter: 0.5,
    log,
    async run() {
      runs += 1;
      if (runs === 1) throw new Error('the database is away');
    },
  });
  await waitFor('the next run', () => runs >= 2);
  await repetition.close();
  expect(warned).toEqual([expect.stringContaining('renewals')]);
});
