import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Terminal, UsageError } from './terminal.ts';

export interface Key {
  readonly key: string;
  /** What the user should know of how it was given. */
  readonly warning: string | undefined;
}

export interface KeyOptions {
  readonly keyFile?: string | undefined;
  /** Origin that the key is for. */
  readonly apiUrl: string;
}

const KEY_CHARS_MAX = 256;
const HOW = 'Set PILLOLE_KEY, or name a file that holds the key alone with --key-file.';

/**
 * The key: of `--key-file`, else of PILLOLE_KEY, else of the demo accounts of a stack that runs
 * here. Never an argument: those stand in the process list and in the shell's history.
 * @throws UsageError
 */
export function readKey({ env, folder }: Terminal, { keyFile, apiUrl }: KeyOptions): Key {
  if (keyFile !== undefined) {
    const key = clean(readText(keyFile), keyFile);
    const isOpen = process.platform !== 'win32' && (statSync(keyFile).mode & 0o077) !== 0;
    const warning = isOpen ? `Others can read ${keyFile}: chmod 600 it.` : undefined;
    return { key, warning };
  }
  if (env.PILLOLE_KEY) return { key: clean(env.PILLOLE_KEY, 'PILLOLE_KEY'), warning: undefined };
  // The key of a demo account is for the stack beside it, and for no other.
  const demo = isLocal(apiUrl) ? readDemoKey(folder) : undefined;
  if (demo !== undefined) return { key: demo, warning: undefined };
  throw new UsageError(`There is no key. ${HOW}`);
}

/** Is it an address of this machine? */
export function isLocal(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

function readDemoKey(folder: string): string | undefined {
  try {
    const keys = JSON.parse(readFileSync(path.join(folder, '.local', 'demo-keys.json'), 'utf8'));
    return typeof keys?.pro === 'string' ? keys.pro : undefined;
  } catch {
    return undefined;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`The key file cannot be read: ${(error as Error).message}`);
  }
}

function clean(text: string, from: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= KEY_CHARS_MAX) return key;
  throw new UsageError(`${from} holds no key: one word is expected. ${HOW}`);
}
