// A program in the place of a stream process, so that it can be made to hang.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive } from '../../lib/child-process/identity.ts';
import { silentLog } from '../../lib/log.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { type One, runOne } from './one.ts';

const WANTED = { name: 'ded_test', accountId: 'acc_test', port: 1, denial: undefined };
const LIMITS = { startingCountsMs: 10_000, silentMaxMs: 1_000, stuckMaxMs: 3_000 };

let folder: string;
let one: One | undefined;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole one-'));
});
afterEach(async () => {
  await one?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs it. @returns what asks it and looks at it as the supervisor does */
async function run(program: string, limits = LIMITS) {
  const entry = path.join(folder, 'program.cjs');
  writeFileSync(entry, program);
  const config = {
    ...{ runFolder: folder, host: '127.0.0.1', nice: 0, childEnv: process.env },
    ...{ databaseUrl: '', isRunFolderShared: false, namespace: 'test', kafkaBrokers: [] },
  };
  one = await runOne(WANTED, config as never, silentLog, () => undefined, {
    ...{ entry, limits },
  });
  let id = 0;
  return () => {
    one!.killIfDead();
    id += 1;
    one!.ask(id);
    return one!.report(id, undefined);
  };
}

const answering = (notReady: string) => `
  process.on('message', ({ order, id }) => {
    if (order !== 'report') return;
    process.send({ id, notReady: ${notReady}, connections: 0, queueBytes: 0, queueMs: 0, offsets: [] });
  });
  setInterval(() => {}, 1e6);`;

test('a process that answers for ever that it is not ready is killed and started again', async () => {
  const look = await run(answering("'reading the log to its end'"));
  const told = await waitFor('its answer', () => {
    const report = look();
    return report.reason === 'Not ready: reading the log to its end.' && report;
  });
  await waitFor('the next one', () => look().restarts > told.restarts);
  expect(isAlive(told.pid!)).toBe(false);
}, 30_000);

test('a process that never says anything is killed and started again', async () => {
  const look = await run('setInterval(() => {}, 1e6);');
  await waitFor('the next one', () => look().restarts > 0);
}, 30_000);

test('a process that serves is left alone', async () => {
  const look = await run(answering('undefined'), { ...LIMITS, stuckMaxMs: 60_000 });
  const { pid } = await waitFor('its answer', () => {
    const report = look();
    return report.state === 'ready' && report;
  });
  const endsAtMs = performance.now() + 3 * LIMITS.silentMaxMs;
  await waitFor(
    'some more answers',
    () => look().state === 'ready' && performance.now() > endsAtMs,
  );
  expect(look()).toMatchObject({ pid, restarts: 0 });
}, 30_000);
