import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { withPdeathsig } from './child.ts';
import { SetupError } from './setup-error.ts';

/** The identity under which PostgreSQL runs, and where its data is then. */
export interface Owner {
  /** The data directory. */
  readonly cluster: string;
  /** Command line of `initdb` or `postgres` under that identity. */
  command(
    program: string,
    args: readonly string[],
    pdeathsig?: boolean,
  ): [string, readonly string[]];
}

interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** Folder of the fallback; survives a restart of the machine, unlike /tmp. */
const SYSTEM_FOLDER = '/var/lib/pillole';

/**
 * Decides under whom PostgreSQL runs. It refuses to run as root, and as a user without a name.
 * There it gets another identity: preferably a user namespace in which we appear as a named user
 * (the files stay ours, any folder can be reached), else, for root, a system user with binaries and
 * data in a folder it can reach. `how` is for tests.
 */
export function chooseOwner(
  binaries: string,
  folder: string,
  how: 'plain' | 'namespace' | 'system-user' = possibleWay(),
): Owner {
  const cluster = path.join(folder, 'cluster');
  const program = (name: string) => path.join(binaries, 'bin', name);
  if (how === 'plain') {
    return { cluster, command: (name, args, dies) => dying(dies, program(name), args) };
  }
  if (how === 'namespace') {
    return {
      cluster,
      command: (name, args, dies) => {
        // Inside of unshare: a change of credentials clears the parent-death signal.
        const [command, rest] = dying(dies, program(name), args);
        return ['unshare', [...namespaceArguments(), command, ...rest]];
      },
    };
  }
  return systemOwner(binaries, folder);
}

function possibleWay(): 'plain' | 'namespace' | 'system-user' {
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && hasName()) return 'plain';
  const tried = spawnSync('unshare', [...namespaceArguments(), 'true'], { stdio: 'ignore' });
  if (tried.status === 0) return 'namespace';
  // Without a name and a namespace there is only initdb's own message left.
  return isRoot ? 'system-user' : 'plain';
}

/** initdb looks its user up: one that /etc/passwd knows. */
function namespaceArguments(): string[] {
  const { uid, gid } = systemUser() ?? { uid: 1000, gid: 1000 };
  return ['--user', `--map-user=${uid}`, `--map-group=${gid}`];
}

function hasName(): boolean {
  try {
    return os.userInfo().username !== '';
  } catch {
    return false;
  }
}

function systemOwner(binaries: string, folder: string): Owner {
  const identity = systemUser();
  if (identity === undefined) {
    throw new SetupError(
      'PostgreSQL does not run as root, and neither unshare nor a system user works here; ' +
        'run: useradd --system postgres, or start as a normal user, or set DATABASE_URL',
    );
  }
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  const home = path.join(SYSTEM_FOLDER, hash);
  mkdirSync(home, { recursive: true, mode: 0o755 });
  chownSync(home, identity.uid, identity.gid);
  const copy = path.join(home, 'native');
  if (!existsSync(copy)) {
    rmSync(`${copy}.part`, { recursive: true, force: true });
    cpSync(binaries, `${copy}.part`, { recursive: true, verbatimSymlinks: true });
    renameSync(`${copy}.part`, copy);
  }
  const as = [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, '--clear-groups', '--'];
  return {
    cluster: path.join(home, 'cluster'),
    command: (name, args, dies) => {
      const [command, rest] = dying(dies, path.join(copy, 'bin', name), args);
      return ['setpriv', [...as, command, ...rest]];
    },
  };
}

function dying(
  dies: boolean | undefined,
  command: string,
  args: readonly string[],
): [string, readonly string[]] {
  return dies === true ? withPdeathsig('SIGINT', command, args) : [command, args];
}

function systemUser(): Identity | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}
