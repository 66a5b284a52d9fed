import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  fchmodSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { writeFileAtomically } from '../files/write-file.ts';
import { identityOf, type ProcessIdentity } from './identity.ts';

export interface ChildSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The child's whole environment; by default the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Output goes to `<logFolder>/<name>.log`; without a folder, to the output of this process. */
  readonly logFolder?: string;
  /** The pid and start time go to `<runFolder>/<name>.json`. */
  readonly runFolder: string;
  /** The signal that requests a clean exit. */
  readonly stopSignal: 'SIGTERM' | 'SIGINT';
  /** A child that has not exited after this time is killed. */
  readonly stopTimeoutMs: number;
  /** The command calls setpriv itself (it changes its credentials, which clears the setting). */
  readonly bringsPdeathsig?: boolean;
  /** Set for a Node child with an IPC channel, which closes when this process is gone. */
  readonly onMessage?: (message: unknown) => void;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** Undefined without a log folder. */
  readonly logFile: string | undefined;
  /** Settles when the process has exited; never rejects. */
  readonly exited: Promise<ChildExit>;
  /** Undefined while the process lives. */
  exit(): ChildExit | undefined;
  /** Requests a clean exit, kills the process after its time-out, resolves when it has exited. */
  stop(): Promise<ChildExit>;
  /** SIGKILL to the process and its group. */
  kill(): void;
  /** Sends over the channel; does nothing when there is no open channel. */
  send(message: object): void;
}

/** The record that a later parent needs to end an orphan properly. */
export interface RunRecord extends ProcessIdentity {
  readonly name: string;
  readonly stopSignal: 'SIGTERM' | 'SIGINT';
}

/** A larger log is moved to `<name>.log.1` when its child starts. */
const LOG_BYTES_MAX = 20 * 1024 * 1024;

/**
 * Starts a child in a session of its own: Ctrl-C reaches only the parent, which stops its children in
 * order. The kernel ends the child when the parent is killed, and a record lets a later parent find
 * orphans.
 * @throws Error when the command cannot be started at all.
 */
export async function startChild(spec: ChildSpec): Promise<Child> {
  mkdirSync(spec.runFolder, { recursive: true, mode: 0o700 });
  const { logFile, output } = openLog(spec);
  const [command, args] =
    spec.bringsPdeathsig === true
      ? [spec.command, spec.args]
      : withPdeathsig(spec.stopSignal, spec.command, spec.args);
  const options = {
    detached: true,
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    ...(spec.env === undefined ? {} : { env: spec.env }),
  };
  const written = output ?? ('inherit' as const);
  const channel = spec.onMessage === undefined ? [] : (['ipc'] as const);
  let child: ChildProcess;
  try {
    child = spawn(command, [...args], {
      ...options,
      stdio: ['ignore', written, written, ...channel],
    });
    await spawned(child);
  } finally {
    if (output !== undefined) closeSync(output);
  }
  return watch(child, spec, logFile);
}

/**
 * `setpriv --pdeathsig`: the kernel sends the signal when the parent ends, even by kill -9. Without
 * setpriv, the next start ends the orphans.
 */
export function withPdeathsig(
  signal: string,
  command: string,
  args: readonly string[],
): [string, readonly string[]] {
  if (!hasSetpriv()) return [command, args];
  return ['setpriv', ['--pdeathsig', signal.replace('SIG', ''), '--', command, ...args]];
}

let setpriv: boolean | undefined;
function hasSetpriv(): boolean {
  setpriv ??=
    spawnSync('setpriv', ['--pdeathsig', 'TERM', '--', process.execPath, '-e', ''], {
      stdio: 'ignore',
    }).status === 0;
  return setpriv;
}

const living = new Set<Child>();

/** SIGKILL to every living child of this process. */
export function killChildren(): void {
  for (const child of living) child.kill();
}

function openLog({ logFolder: folder, name }: ChildSpec): {
  readonly logFile: string | undefined;
  readonly output: number | undefined;
} {
  if (folder === undefined) return { logFile: undefined, output: undefined };
  // A database's log may contain customers' data.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const logFile = path.join(folder, `${name}.log`);
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.1`);
  const output = openSync(logFile, 'a', 0o600);
  fchmodSync(output, 0o600);
  return { logFile, output };
}

function spawned(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
}

function watch(child: ChildProcess, spec: ChildSpec, logFile: string | undefined): Child {
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${spec.name}: no pid`);
  const runFile = path.join(spec.runFolder, `${spec.name}.json`);
  const identity = identityOf(pid);
  if (identity !== undefined) {
    const record: RunRecord = { ...identity, name: spec.name, stopSignal: spec.stopSignal };
    try {
      writeFileAtomically(runFile, JSON.stringify(record));
    } catch (error) {
      // Without a record, the child could become an unknown orphan.
      child.on('error', () => undefined);
      child.kill('SIGKILL');
      throw error;
    }
  }
  let exit: ChildExit | undefined;
  const exited = new Promise<ChildExit>((resolve) => {
    child.once('exit', (code, signal) => {
      exit = { code, signal };
      living.delete(handle);
      rmSync(runFile, { force: true });
      resolve(exit);
    });
  });
  const kill = () => {
    if (exit !== undefined) return;
    // The group first, so that its own children end too. The group may no longer exist.
    for (const target of [-pid, pid]) {
      try {
        process.kill(target, 'SIGKILL');
      } catch {}
    }
  };
  const stop = async () => {
    if (exit === undefined) child.kill(spec.stopSignal);
    const timer = setTimeout(kill, spec.stopTimeoutMs);
    try {
      return await exited;
    } finally {
      clearTimeout(timer);
    }
  };
  const send = (message: object) => {
    // The exit event reports a channel that breaks meanwhile.
    if (child.connected) child.send(message, () => undefined);
  };
  if (spec.onMessage !== undefined) child.on('message', spec.onMessage);
  child.on('error', () => undefined); // a signal or message that could not be delivered
  const handle: Child = {
    name: spec.name,
    pid,
    logFile,
    exited,
    exit: () => exit,
    stop,
    kill,
    send,
  };
  living.add(handle);
  return handle;
}
