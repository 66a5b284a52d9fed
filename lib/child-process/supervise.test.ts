import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { type Child, killChildren, startChild } from './child.ts';
import { identityOf } from './identity.ts';
import { type Supervised, supervise } from './supervise.ts';

let folder: string;
let lines: string[];
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole supervisor-'));
  lines = [];
});
afterEach(() => {
  killChildren();
  rmSync(folder, { recursive: true, force: true });
});

const backoff = { firstMs: 20, maxMs: 80, resetAfterMs: 60_000 };

function watchOver(code: string, onStart: () => void = () => {}): Promise<Supervised> {
  return supervise({
    name: 'thing',
    start: (): Promise<Child> => {
      onStart();
      return startChild({
        name: 'thing',
        command: process.execPath,
        args: ['-e', code],
        logFolder: folder,
        runFolder: folder,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: 60_000,
      });
    },
    ready: async () => {},
    say: (line) => lines.push(line),
    backoff,
  });
}

const lives = 'setInterval(() => {}, 1e6)';
const until = (what: string, check: () => boolean) =>
  waitUntil(what, check, { timeoutMs: 60_000, intervalMs: 10 });

test('a killed child is restarted under another pid, and the restart is reported', async () => {
  const supervised = await watchOver(lives);
  const first = supervised.pid() ?? 0;
  process.kill(first, 'SIGKILL');
  await until('restart', () => ![undefined, first].includes(supervised.pid()));
  await until('line', () => lines.some((line) => line.includes('is back after')));
  expect(lines[0]).toBe('thing died by SIGKILL, restart in 0.02 s');
  await supervised.stop();
  expect(identityOf(first)).toBeUndefined();
});

test('the pause doubles up to its maximum', async () => {
  const supervised = await watchOver('process.exit(3)');
  await until('deaths', () => lines.filter((line) => line.includes('exit code')).length >= 5);
  await supervised.stop();
  const pauses = lines.flatMap((line) => /exit code 3, restart in (\S+) s/.exec(line)?.[1] ?? []);
  expect(pauses.slice(0, 5)).toEqual(['0.02', '0.04', '0.08', '0.08', '0.08']);
});

test('a failed start is retried', async () => {
  let starts = 0;
  const supervised = await watchOver(lives, () => {
    starts += 1;
    if (starts === 2) throw new Error('no such thing');
  });
  process.kill(supervised.pid() ?? 0, 'SIGKILL');
  await until('third start', () => starts === 3);
  await until('line', () => lines.includes('thing did not start: no such thing'));
  await supervised.stop();
});

test('stop during the pause prevents a restart', async () => {
  let starts = 0;
  const supervised = await watchOver('process.exit(1)', () => {
    starts += 1;
  });
  await until('death', () => lines.length > 0);
  await supervised.stop();
  const startsAtStop = starts;
  await new Promise((resolve) => setTimeout(resolve, backoff.maxMs * 2));
  expect([starts, supervised.pid()]).toEqual([startsAtStop, undefined]);
});
