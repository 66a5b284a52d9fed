import { chmodSync, lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { type Lock, takeLock } from '../../lib/child-process/lock.ts';
import { writeFileAtomically } from '../../lib/files/write-file.ts';

/** Allocates ports of the local stack and remembers them for later starts. */
export type PortAllocator = ReturnType<typeof openPortAllocator>;

/** Below the range from which Linux takes ports for outgoing connections (32768 and up). */
const FALLBACK_PORTS = { from: 20_000, to: 32_000 };
const TRIES_MAX = 50;

/**
 * Opens an allocator whose ports are remembered in `file`; an unreadable file counts as empty. A
 * claim file per port keeps two launchers that start at the same moment from choosing the same port.
 */
export function openPortAllocator(file: string) {
  const remembered = readRememberedPorts(file);
  const claims: Lock[] = [];
  const allocated: number[] = [];

  async function tryClaim(port: number): Promise<boolean> {
    // A program may listen on all addresses: then the loopback address is taken too.
    for (const host of ['127.0.0.1', '0.0.0.0']) if (!(await canListen(port, host))) return false;
    const claim = takeLock(path.join(claimFolder(), String(port)));
    if (!claim.ok) return false;
    claims.push(claim.lock);
    return true;
  }

  async function claimFirst(candidates: Iterable<number>): Promise<number | undefined> {
    for (const port of candidates) if (await tryClaim(port)) return port;
    return undefined;
  }

  return {
    /** The remembered port, else the preferred one (0 = none), else any free port. */
    async allocate(name: string, preferred: number): Promise<number> {
      const known = remembered.get(name);
      const first = known === undefined ? [] : [known];
      const port =
        (await claimFirst(preferred === 0 ? first : [...first, preferred])) ??
        (await claimFirst(randomPorts()));
      if (port === undefined) throw new Error(`no free port for ${name}`);
      allocated.push(port);
      if (known !== port) {
        remembered.set(name, port);
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileAtomically(file, `${JSON.stringify(Object.fromEntries(remembered), null, 2)}\n`);
      }
      return port;
    },
    /** All ports allocated so far. */
    allocated: (): readonly number[] => allocated,
    /** Releases the claims; the numbers stay remembered. */
    release(): void {
      for (const claim of claims.splice(0)) claim.release();
    },
  };
}

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function* randomPorts(): Generator<number> {
  const { from, to } = FALLBACK_PORTS;
  for (let i = 0; i < TRIES_MAX; i++) yield from + Math.floor(Math.random() * (to - from));
}

/** One folder per user, because the files of another user cannot be replaced. */
function claimFolder(): string {
  const uid = process.getuid?.();
  const folder = path.join(os.tmpdir(), `pillole-ports-${uid ?? 'user'}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || (uid !== undefined && stat.uid !== uid)) {
    throw new Error(`${folder} is not a folder of this user: have it removed.`);
  }
  chmodSync(folder, 0o700);
  return folder;
}

function readRememberedPorts(file: string): Map<string, number> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof value !== 'object' || value === null) return new Map();
    const entries = Object.entries(value).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number',
    );
    return new Map(entries);
  } catch {
    return new Map();
  }
}
