import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
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
import { withPdeathsig } from './local-child.ts';
import { SetupError } from './setup-error.ts';

/** The user that PostgreSQL runs as, and the place of its data. */
export type Owner = ReturnType<typeof ownerOf>;

/** Data of the system user; unlike /tmp, the folder survives a restart of the machine. */
const SYSTEM_FOLDER = '/var/lib/pillole';

/** Ids that neither distributions nor systemd give to groups. */
const UNUSED_GIDS = { from: 60_578, count: 606 };

/**
 * Chooses the user that PostgreSQL runs as. PostgreSQL refuses to run as root and as a user without
 * a name. In these cases it runs in a user namespace that maps us to a named user (the files stay
 * ours, any folder is accessible) or, if that fails for root, as a system user with binaries and data
 * in a folder that only that process can enter. `method` is for tests.
 */
export function chooseOwner(
  binaries: string,
  folder: string,
  method: 'plain' | 'namespace' | 'system-user' = chooseMethod(),
): Owner {
  const bin = path.join(binaries, 'bin');
  if (method === 'plain') return ownerOf(folder, bin, []);
  if (method === 'namespace') return ownerOf(folder, bin, ['unshare', ...namespaceArguments()]);
  return systemOwner(binaries, folder);
}

/** @param runAs the command that runs its arguments as the user; empty = none is needed */
function ownerOf(
  folder: string,
  bin: string,
  runAs: readonly string[],
  give: (file: string) => void = () => {},
) {
  return {
    /** The data directory. */
    cluster: path.join(folder, 'cluster'),
    /** Makes the user the owner of a file or folder that we have created. */
    give,
    /** The command line of `initdb` or `postgres` for that user. */
    command(program: string, args: readonly string[], hasPdeathsig = false): [string, string[]] {
      const file = path.join(bin, program);
      // Set inside `runAs`: a change of credentials clears the parent-death signal.
      const [command, rest] = hasPdeathsig ? withPdeathsig('SIGINT', file, args) : [file, args];
      const [first = command, ...others] = [...runAs, command, ...rest];
      return [first, others];
    },
  };
}

function chooseMethod(): 'plain' | 'namespace' | 'system-user' {
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && hasName()) return 'plain';
  const tried = spawnSync('unshare', [...namespaceArguments(), 'true'], { stdio: 'ignore' });
  if (tried.status === 0) return 'namespace';
  // Without a name and a namespace, initdb itself reports the error.
  return isRoot ? 'system-user' : 'plain';
}

/** initdb looks up its user, so the namespace maps to a user of /etc/passwd. */
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
  const user = systemUser();
  if (user === undefined) {
    throw new SetupError(
      'PostgreSQL does not run as root, and neither unshare nor a system user works here; ' +
        'run: useradd --system postgres, or start as a normal user, or set DATABASE_URL',
    );
  }
  const digest = createHash('sha256').update(folder).digest();
  const home = path.join(SYSTEM_FOLDER, digest.toString('hex').slice(0, 16));
  mkdirSync(home, { recursive: true });
  chmodSync(SYSTEM_FOLDER, 0o711);
  // Other processes may run as this user, e.g. as nobody: a group that no other process has lets
  // only PostgreSQL into its folder.
  const gid = UNUSED_GIDS.from + (digest.readUInt32BE() % UNUSED_GIDS.count);
  chownSync(home, 0, gid);
  chmodSync(home, 0o710);
  const copy = path.join(home, 'native');
  if (!existsSync(copy)) {
    rmSync(`${copy}.part`, { recursive: true, force: true });
    cpSync(binaries, `${copy}.part`, { recursive: true, verbatimSymlinks: true });
    renameSync(`${copy}.part`, copy);
  }
  const runAs = [`--reuid=${user.uid}`, `--regid=${gid}`, '--clear-groups', '--'];
  return ownerOf(home, path.join(copy, 'bin'), ['setpriv', ...runAs], (file) =>
    chownSync(file, user.uid, gid),
  );
}

function systemUser(): { readonly uid: number; readonly gid: number } | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}
