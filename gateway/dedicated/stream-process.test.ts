// These tests run a program in place of a stream process, so that it can be made to hang.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAlive } from '../../lib/child-process/identity.ts';
import { silentLog } from '../../lib/log/log.ts';
import { waitFor } from '../../testing/wait.ts';
import { runStreamProcess, type StreamProcess } from './stream-process.ts';

const WANTED = { name: 'ded_test', accountId: 'acc_test', port: 1, denial: undefined };
const LIMITS = { startingCountsMs: 10_000, silentMaxMs: 1_000, stuckMaxMs: 3_000 };

let folder: string;
let running: StreamProcess | undefined;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole stream-'));
});
afterEach(async () => {
  await running?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the program. @returns a function that requests and reads a report, as the supervisor does */
async function run(program: string, limits = LIMITS) {
  const entry = path.join(folder, 'program.cjs');
  writeFileSync(entry, program);
  const config = {
    runFolder: folder,
    nice: 0,
    childEnv: process.env,
  };
  running = await runStreamProcess(WANTED, config as never, silentLog, () => undefined, {
    entry,
    limits,
  });
  let id = 0;
  return () => {
    running!.killIfDead();
    id += 1;
    running!.requestReport(id);
    return running!.report(id, undefined);
  };
}

const answering = (notReady: string) => `
  process.on('message', ({ command, id }) => {
    if (command !== 'report') return;
    process.send({ id, notReady: ${notReady}, connections: 0, queueBytes: 0, queueMs: 0, offsets: [] });
  });
  setInterval(() => {}, 1e6);`;

test('a process that reports not ready forever is killed and restarted', async () => {
  const readReport = await run(answering("'reading the log to its end'"));
  const stuck = await waitFor('the report', () => {
    const report = readReport();
    return report.reason === 'Not ready: reading the log to its end.' && report;
  });
  await waitFor('the restart', () => readReport().restarts > stuck.restarts);
  expect(isAlive(stuck.pid!)).toBe(false);
});

test('a process that never reports is killed and restarted', async () => {
  const readReport = await run('setInterval(() => {}, 1e6);');
  await waitFor('the restart', () => readReport().restarts > 0);
});

test('a serving process keeps running', async () => {
  // A busy machine may leave the program without the CPU for a second or two.
  const limits = { ...LIMITS, silentMaxMs: 5_000, stuckMaxMs: 60_000 };
  const readReport = await run(answering('undefined'), limits);
  const { pid } = await waitFor('the report', () => {
    const report = readReport();
    return report.state === 'ready' && report;
  });
  const endsAtMs = performance.now() + 1.5 * limits.silentMaxMs;
  await waitFor(
    'further reports',
    () => readReport().state === 'ready' && performance.now() > endsAtMs,
  );
  expect(readReport()).toMatchObject({ pid, restarts: 0 });
});
