import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { type Lock, takeLock } from '../../lib/child-process/lock.ts';
import { writeFileAtomically } from '../../lib/write-file.ts';

/** Ports of the local stack: the wanted one when free, else another, remembered for later. */
export interface PortBook {
  /** The remembered port, else the wanted one, else a free one (0 = any free one). */
  choose(name: string, wanted: number): Promise<number>;
  /** Gives the claims back; the numbers stay remembered. */
  release(): void;
}

/** Below the range from which Linux takes ports for outgoing connections (32768 and up). */
const FALLBACK_PORTS = { from: 20_000, to: 32_000 };
const TRIES_MAX = 50;

/**
 * Opens the book kept in `file`; an unreadable one counts as empty. A claim file per port keeps two
 * launchers that start in the same second from choosing alike.
 */
export function openPortBook(file: string): PortBook {
  const remembered = readBook(file);
  const claims: Lock[] = [];

  async function claimable(port: number): Promise<boolean> {
    // Someone may listen on all addresses: then the loopback one is not ours to take either.
    for (const host of ['127.0.0.1', '0.0.0.0']) if (!(await canListen(port, host))) return false;
    const claim = takeLock(path.join(claimFolder(), String(port)));
    if (!claim.ok) return false;
    claims.push(claim.lock);
    return true;
  }

  async function pick(candidates: Iterable<number>): Promise<number | undefined> {
    for (const port of candidates) if (await claimable(port)) return port;
    return undefined;
  }

  return {
    async choose(name, wanted) {
      const known = remembered.get(name);
      const first = known === undefined ? [] : [known];
      const port =
        (await pick(wanted === 0 ? first : [...first, wanted])) ?? (await pick(randomPorts()));
      if (port === undefined) throw new Error(`no free port for ${name}`);
      if (known !== port) {
        remembered.set(name, port);
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileAtomically(file, `${JSON.stringify(Object.fromEntries(remembered), null, 2)}\n`);
      }
      return port;
    },
    release() {
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

/** One folder per user: another user's files could not be replaced. */
function claimFolder(): string {
  return path.join(os.tmpdir(), `pillole-ports-${process.getuid?.() ?? 'user'}`);
}

function readBook(file: string): Map<string, number> {
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
