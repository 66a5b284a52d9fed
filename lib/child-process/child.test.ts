import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { type Child, type ChildSpec, killChildren, startChild } from './child.ts';
import { identityOf, isSameAlive } from './identity.ts';
import { endOrphans } from './orphans.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'pillole child-'));
});
afterEach(() => {
  killChildren();
  rmSync(folder, { recursive: true, force: true });
});

function start(code: string, spec: Partial<ChildSpec> = {}): Promise<Child> {
  return startChild({
    name: 'thing',
    command: process.execPath,
    args: ['-e', `${code}; console.log('up'); setInterval(() => {}, 1e6)`],
    logFolder: path.join(folder, 'logs'),
    runFolder: path.join(folder, 'run'),
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 60_000,
    ...spec,
  });
}

const isUp = (child: Child) =>
  waitUntil('child', () => readFileSync(child.logFile!, 'utf8').includes('up'), {
    timeoutMs: 60_000,
    intervalMs: 20,
  });

test('a child is recorded while it lives, and stops on its signal', async () => {
  const child = await start('');
  await isUp(child);
  const record = path.join(folder, 'run', 'thing.json');
  expect(JSON.parse(readFileSync(record, 'utf8'))).toMatchObject({ pid: child.pid });
  expect(await child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  expect([existsSync(record), identityOf(child.pid)]).toEqual([false, undefined]);
});

test('a child that ignores the signal is killed after its time-out', async () => {
  const child = await start("process.on('SIGTERM', () => {})", { stopTimeoutMs: 50 });
  await isUp(child);
  expect(await child.stop()).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a command that does not exist is an error, not a crash', async () => {
  await expect(
    start('', { command: path.join(folder, 'missing'), bringsPdeathsig: true }),
  ).rejects.toThrow('ENOENT');
});

test('a child that cannot be recorded is killed, because it could become an unknown orphan', async () => {
  // A folder instead of the record file: not even root can write there.
  mkdirSync(path.join(folder, 'run', 'thing.json', 'in the way'), { recursive: true });
  const marker = `pillole-${path.basename(folder)}`;
  const living = () => spawnSync('pgrep', ['-f', marker]).stdout.toString().trim();
  await expect(start(`// ${marker}\n0`)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  await waitUntil('the child to end', () => living() === '', { timeoutMs: 60_000, intervalMs: 20 });
});

test('a log over the limit is moved aside at the next start', async () => {
  const first = await start('');
  await isUp(first);
  await first.stop();
  writeFileSync(first.logFile!, Buffer.alloc(21 * 1024 * 1024));
  const second = await start('');
  await isUp(second);
  await second.stop();
  expect(readFileSync(second.logFile!).length).toBeLessThan(1_000);
  expect(readFileSync(`${second.logFile}.1`).length).toBe(21 * 1024 * 1024);
});

test('orphans are ended; a process that reuses an orphan’s pid is not', async () => {
  const orphan = await start('', { name: 'orphan' });
  const stranger = await start('', { name: 'stranger' });
  await isUp(orphan);
  await isUp(stranger);
  const identity = identityOf(stranger.pid);
  if (identity === undefined) throw new Error('the stranger is gone');
  const reused = { ...identity, startTime: 'another time', stopSignal: 'SIGTERM' };
  writeFileSync(path.join(folder, 'run', 'stranger.json'), JSON.stringify(reused));
  writeFileSync(path.join(folder, 'run', 'broken.json'), '{');
  expect(await endOrphans(path.join(folder, 'run'))).toEqual(['orphan']);
  expect([identityOf(orphan.pid), isSameAlive(identity)]).toEqual([undefined, true]);
});

const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0;

test.skipIf(!hasSetpriv)('a child dies with a launcher that is killed', async () => {
  const code = `
    const { startChild } = await import(${JSON.stringify(new URL('./child.ts', import.meta.url).href.replace('/lib/child-process/child.ts', '/dist/lib/child-process/child.js'))});
    const child = await startChild({
      name: 'thing', command: process.execPath, args: ['-e', 'setInterval(() => {}, 1e6)'],
      logFolder: 'logs', runFolder: 'run', stopSignal: 'SIGTERM', stopTimeoutMs: 1000 });
    console.log(child.pid);
    process.kill(process.pid, 'SIGKILL');`;
  const launcher = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    encoding: 'utf8',
  });
  const pid = Number(launcher.stdout);
  expect(pid).toBeGreaterThan(1);
  await waitUntil('death of the child', () => identityOf(pid) === undefined, { timeoutMs: 60_000 });
});
