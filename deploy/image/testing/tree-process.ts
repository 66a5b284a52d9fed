import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { request } from 'undici';
import { packageRoot } from '../../../lib/files/package-root.ts';
import { asRole } from '../../../testing/engine-addresses.ts';
import { getPort } from '../../../testing/ports.ts';
import { exitOf } from '../../../testing/process.ts';
import { GiveUp, waitFor } from '../../../testing/wait.ts';
import { PROCESSES } from '../../local/processes.ts';
import { type ImageRecipe, readRecipe } from '../dockerfile.ts';

const READY_MS = 120_000;

/** A program that runs in the image's file tree, apart from the machine's own files. */
export interface TreeProcess {
  readonly metricsPort: string;
  readonly exited: Promise<number | string>;
  output(): string;
  /** Pid of the first process inside, as seen from outside. */
  pid(): number;
  /** Waits until /ready answers 200. */
  ready(): Promise<void>;
  /** Sends SIGTERM to the first process inside, as a container engine does. */
  stop(): Promise<number | string>;
}

export interface TreeDeps {
  readonly tree: string;
  /** Folder that is mounted at /run/secrets. */
  readonly secrets: string;
  readonly recipe?: ImageRecipe;
}

/** Starts `args` by the image's ENTRYPOINT, with its ENV and `env`. */
export async function startInTree(
  deps: TreeDeps,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<TreeProcess> {
  const recipe = deps.recipe ?? readRecipe();
  const metricsPort = String(await getPort());
  const one = runInTree({ ...deps, recipe }, [...recipe.entrypoint, ...args], {
    ...withOwnRole(args, env),
    METRICS_PORT: metricsPort,
  });
  let gone = false;
  void one.exited.then(() => {
    gone = true;
  });
  const ready = () =>
    waitFor(
      `${args.join(' ')} to be ready`,
      async () => {
        if (gone) throw new GiveUp(`${args.join(' ')} ended:\n${one.output()}`);
        const { statusCode, body } = await request(`http://127.0.0.1:${metricsPort}/ready`);
        const text = await body.text();
        return statusCode === 200 || `${text}\n${one.output().slice(-2_000)}`;
      },
      READY_MS,
    ).then(
      () => undefined,
      (error: unknown) => {
        one.child.kill('SIGKILL');
        throw error;
      },
    );
  return { ...one, metricsPort, ready };
}

/** Runs a command in the tree, with the image's ENV and `env`. */
export function runInTree(
  { tree, secrets, recipe = readRecipe() }: TreeDeps,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
) {
  const script = path.join(packageRoot, 'deploy/image/enclosure.sh');
  const child: ChildProcess = spawn('sh', [script, tree, secrets, recipe.workdir, ...command], {
    env: { PATH: process.env.PATH, ...recipe.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-1_000_000);
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const exited = exitOf(child);
  const pid = () => {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    return Number(children.trim().split(' ')[0]);
  };
  return {
    child,
    exited,
    output: () => output,
    pid,
    stop() {
      process.kill(pid(), 'SIGTERM');
      return exited;
    },
  };
}

/** The address of PostgreSQL with the role of the process, as the launcher and the chart give it. */
function withOwnRole(args: readonly string[], env: Readonly<Record<string, string>>) {
  const [entry, ...rest] = args;
  const role = PROCESSES.find(
    (one) => `dist/${one.entry}` === entry && one.args.every((arg, at) => arg === rest[at]),
  )?.postgres;
  if (role === undefined || env.DATABASE_URL === undefined) return env;
  return { ...env, DATABASE_URL: asRole(env.DATABASE_URL, role) };
}
