import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ConfigError, type ConfigReader } from '../../lib/config/config.ts';
import { createGauge } from '../../lib/metrics/metrics.ts';

const BYTES_MIN = 32;
/** Versions in a file: more than a rotation needs; each costs an HMAC for every unknown key. */
export const PEPPERS_MAX = 8;
/** A sealed text carries the version in one byte. */
export const VERSION_MAX = 255;
/** Every process reads the file again this often. */
const READ_EVERY_MS = 1_000;
const LINE = /^(\d{1,3}) (\S+) ((?:[0-9a-f]{2})+)$/i;

/** A version of the pepper. */
export interface PepperVersion {
  /** 1 to 255. */
  readonly version: number;
  /** From then on everything new is made under this version; before, it is only accepted. */
  readonly activeFromMs: number;
  readonly bytes: Buffer;
}

/** The secrets under which keys are hashed, texts are signed and secrets are sealed. */
export interface Pepper {
  /** The newest active version. */
  current(): PepperVersion;
  /** All accepted versions, newest first. */
  all(): readonly PepperVersion[];
}

/** Reads and follows the file of KEY_PEPPER_FILE, see `readPepper`. */
export function readPepperSetting(reader: ConfigReader): Pepper {
  const none = fixedPepper(Buffer.alloc(0));
  const path = reader.need('KEY_PEPPER_FILE');
  return path === '' ? none : reader.attempt(() => readPepper(path), none);
}

/**
 * Reads the file, see `parsePeppers`, and follows it, so that a new version needs no restart: a use reads
 * the file again if the last reading is a second old. If the file has become unreadable or wrong, the
 * versions that were read last stay in force. The file must be the same for every process and is not
 * part of a database dump; without it every key is void.
 * @throws ConfigError if the file is wrong now
 */
export function readPepper(path: string): Pepper {
  let text = readText(path);
  let versions = parsePeppers(text, path);
  let readAtMs = performance.now();
  let isFaulty = false;
  const follow = () => {
    if (performance.now() - readAtMs < READ_EVERY_MS) return versions;
    readAtMs = performance.now();
    try {
      const now = readText(path);
      if (now !== text) versions = parsePeppers(now, path);
      text = now;
      isFaulty = false;
    } catch {
      isFaulty = true;
    }
    return versions;
  };
  const pepper = pepperOf(follow);
  gauged = () => ({ current: pepper.current().version, accepted: follow().length, isFaulty });
  return pepper;
}

/** The peppers that this process has read. */
let gauged: (() => { current: number; accepted: number; isFaulty: boolean }) | undefined;
for (const [name, help, read] of [
  ['version', 'Version of the pepper for new hashes and seals.', () => gauged?.().current],
  ['versions', 'Versions of the pepper that are accepted.', () => gauged?.().accepted],
  [
    'file_faulty',
    '1 if KEY_PEPPER_FILE cannot be read or is wrong now: the versions read last are in force.',
    () => (gauged === undefined ? undefined : Number(gauged().isFaulty)),
  ],
] as const) {
  createGauge({
    name: `pillole_pepper_${name}`,
    help,
    collect() {
      const value = read();
      if (value !== undefined) this.set(value);
    },
  });
}

/** A pepper of one version. */
export function fixedPepper(bytes: Buffer, version = 1): Pepper {
  const versions = [{ version, activeFromMs: 0, bytes }];
  return pepperOf(() => versions);
}

/** Whether a signature was made under any accepted version. */
export function isSigned(pepper: Pepper, given: Buffer, sign: (bytes: Buffer) => Buffer): boolean {
  return pepper.all().some(({ bytes }) => {
    const expected = sign(bytes);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/**
 * Parses the text of the file. One line of hex is version 1. Otherwise each line has a version, the
 * time from which it is active, and at least 32 bytes as hex, e.g. `2 2026-11-22T20:00:00.000Z 9f…`.
 * @returns newest first, at least one of them active
 * @throws ConfigError, which never repeats a secret
 */
export function parsePeppers(text: string, path: string): readonly PepperVersion[] {
  const trimmed = text.trim();
  if (isHex(trimmed)) return [versionOf(1, 0, trimmed, path)];
  const lines = trimmed.split('\n');
  const versions = lines.map((line, n) => {
    const [, version, from, hex] = LINE.exec(line.trim()) ?? [];
    const activeFromMs = Date.parse(from ?? '');
    if (hex !== undefined && !Number.isNaN(activeFromMs)) {
      return versionOf(Number(version), activeFromMs, hex, path);
    }
    const where = lines.length > 1 ? `line ${n + 1} of ${path}` : path;
    throw new ConfigError(
      `KEY_PEPPER_FILE: ${where} must hold at least ${BYTES_MIN} bytes as hex; make a file with: ` +
        'openssl rand -hex 32. Further versions are added by: npm run admin -- pepper add',
    );
  });
  versions.sort((a, b) => b.version - a.version);
  const numbers = new Set(versions.map(({ version }) => version));
  if (numbers.size < versions.length || versions.length > PEPPERS_MAX) {
    throw new ConfigError(
      `KEY_PEPPER_FILE ${path} must hold at most ${PEPPERS_MAX} versions, each once.`,
    );
  }
  if (versions.some(({ activeFromMs }) => activeFromMs <= Date.now())) return versions;
  throw new ConfigError(`KEY_PEPPER_FILE ${path} must hold a version that is active already.`);
}

/** The text of the file for these versions. */
export function formatPeppers(versions: readonly PepperVersion[]): string {
  const lines = versions.map(({ version, activeFromMs, bytes }) =>
    [version, new Date(activeFromMs).toISOString(), bytes.toString('hex')].join(' '),
  );
  return `${lines.join('\n')}\n`;
}

function versionOf(version: number, activeFromMs: number, hex: string, path: string) {
  if (version >= 1 && version <= VERSION_MAX && hex.length >= 2 * BYTES_MIN) {
    return { version, activeFromMs, bytes: Buffer.from(hex, 'hex') };
  }
  throw new ConfigError(
    `KEY_PEPPER_FILE ${path} must hold at least ${BYTES_MIN} bytes as hex for each version from 1 ` +
      `to ${VERSION_MAX}; make a file with: openssl rand -hex 32`,
  );
}

function isHex(text: string): boolean {
  return /^(?:[0-9a-f]{2})+$/i.test(text);
}

function pepperOf(versions: () => readonly PepperVersion[]): Pepper {
  return {
    current() {
      const now = Date.now();
      // A clock that was set back must not leave the process without a version.
      return versions().find(({ activeFromMs }) => activeFromMs <= now) ?? versions().at(-1)!;
    },
    all: versions,
  };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`KEY_PEPPER_FILE ${path} cannot be read (${code}).`);
  }
}
