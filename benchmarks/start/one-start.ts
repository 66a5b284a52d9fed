import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENGINE_VARIABLES } from '../../deploy/local/config.ts';
import { readDemoKeys } from '../../lib/demo-keys.ts';
import { packageRoot } from '../../lib/root.ts';
import { readStackFile } from '../../lib/stack-file.ts';
import { openSocket } from '../end-to-end/watch.ts';
import type { Moments } from './plan.ts';

const START_MAX_MS = 3 * 60_000;
/** The first start on a machine downloads engines. */
export const FIRST_START_MAX_MS = 15 * 60_000;
const PILL_MAX_MS = 30_000;
const STOP_MAX_MS = 20_000;
const POLL_MS = 10;
/** What the launcher says when it begins, and when the engines are up. */
const BEGUN = 'starting the engines';
const ENGINES_UP = 'creating topics';

/**
 * Runs `npm start` on a data folder until a socket has its first pill, then stops it and waits
 * until everything is down.
 * @throws when one of it does not come in time
 */
export async function startOnce(folder: string, timeoutMs = START_MAX_MS): Promise<Moments> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  // Engines of its own, whatever this run was told to use: they are most of a start.
  const env = { ...process.env };
  for (const name of Object.values(ENGINE_VARIABLES)) delete env[name];
  const command = spawn('npm', ['start', '--', '--data', folder], {
    ...{ cwd: packageRoot, env, detached: true },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = watchOutput(command, elapsed);
  try {
    const stackFile = path.join(folder, 'stack.json');
    const deadline = startedAt + timeoutMs;
    for (; !isThere(stackFile); await sleep(POLL_MS)) {
      if (said.ended()) throw new Error(`"npm start" ended:\n${said.tail()}`);
      if (performance.now() > deadline) throw new Error(`"npm start" hangs:\n${said.tail()}`);
    }
    const platformUp = elapsed();
    const { socketLive, firstPill } = await awaitPill(stackFile, elapsed);
    const [begun, enginesUp] = [BEGUN, ENGINES_UP].map((words) => {
      const at = said.at(words);
      if (at === undefined) throw new Error(`The launcher did not say "${words}".`);
      return at;
    }) as [number, number];
    return { begun, enginesUp, platformUp, socketLive, firstPill };
  } finally {
    await stop(folder, command, said.ended);
  }
}

async function awaitPill(stackFile: string, elapsed: () => number) {
  const { stream } = readStackFile(stackFile);
  const apiKey = readDemoKeys(stackFile).institutional;
  let onPill: (at: number) => void = () => undefined;
  let timer: NodeJS.Timeout | undefined;
  const pill = new Promise<number>((resolve, reject) => {
    onPill = resolve;
    timer = setTimeout(
      () => reject(new Error(`No pill of the demo market within ${PILL_MAX_MS / 1_000} s.`)),
      PILL_MAX_MS,
    );
  });
  pill.catch(() => undefined); // told below, also when the socket fails first
  try {
    const onFrame = (text: string) => {
      if (text.startsWith('{"type":"pill')) onPill(elapsed());
    };
    const socket = await openSocket({ stream, apiKey }, onFrame, () => undefined);
    const socketLive = elapsed();
    try {
      return { socketLive, firstPill: await pill };
    } finally {
      socket.terminate();
    }
  } finally {
    clearTimeout(timer);
  }
}

function watchOutput(command: ChildProcess, elapsed: () => number) {
  const lines: { readonly at: number; readonly text: string }[] = [];
  let hasEnded = false;
  command.once('error', () => {
    hasEnded = true;
  });
  command.once('exit', () => {
    hasEnded = true;
  });
  for (const stream of [command.stdout, command.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      const at = elapsed();
      for (const text of chunk.toString('utf8').split('\n')) lines.push({ at, text });
      lines.splice(0, lines.length - 500);
    });
  }
  return {
    at: (words: string) => lines.find(({ text }) => text.includes(words))?.at,
    ended: () => hasEnded,
    tail: () =>
      lines
        .slice(-20)
        .map(({ text }) => text)
        .join('\n'),
  };
}

/** Asks the launcher, by the pid of its lock, to end; what is left of its group is killed. */
async function stop(folder: string, command: ChildProcess, ended: () => boolean): Promise<void> {
  const launcher = pidOfLock(path.join(folder, 'lock'));
  for (const pid of [launcher, command.pid]) signal(pid, 'SIGTERM');
  const deadline = performance.now() + STOP_MAX_MS;
  while (!(ended() && isGone(launcher)) && performance.now() < deadline) await sleep(50);
  if (ended() && isGone(launcher)) return;
  signal(launcher, 'SIGKILL');
  signal(command.pid === undefined ? undefined : -command.pid, 'SIGKILL');
}

function pidOfLock(file: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid;
  } catch {
    return undefined;
  }
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name);
  } catch {
    // It is gone.
  }
}

function isGone(pid: number | undefined): boolean {
  try {
    if (pid !== undefined) process.kill(pid, 0);
    return pid === undefined;
  } catch {
    return true;
  }
}

function isThere(stackFile: string): boolean {
  try {
    readStackFile(stackFile);
    return true;
  } catch {
    return false;
  }
}
