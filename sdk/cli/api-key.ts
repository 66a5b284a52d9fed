import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Terminal, UsageError } from './terminal.ts';

export interface Key {
  readonly key: string;
  /** A risk in how the key is stored. */
  readonly warning: string | undefined;
}

const KEY_CHARS_MAX = 256;
const HOW_TOKEN =
  'Set PILLOLE_GENERATOR_TOKEN, or use --token-file with a file that contains only the token.';
const HOW = 'Set PILLOLE_KEY, or use --key-file with a file that contains only the key.';

/**
 * The key: of `--key-file`, else of PILLOLE_KEY, else of the demo accounts of a stack in this
 * folder. Never an argument: the process list and the shell's history would show it.
 * @param apiUrl origin that the key is for
 * @throws UsageError
 */
export function readKey(
  { env, folder }: Terminal,
  keyFile: string | undefined,
  apiUrl: string,
): Key {
  if (keyFile !== undefined) return readSecret(keyFile, HOW);
  if (env.PILLOLE_KEY)
    return { key: clean(env.PILLOLE_KEY, 'PILLOLE_KEY', HOW), warning: undefined };
  // The key of a demo account is sent only to the stack of this machine.
  const demo = isLocal(apiUrl) ? readDemoKey(folder) : undefined;
  if (demo !== undefined) return { key: demo, warning: undefined };
  throw new UsageError(`No key is set. ${HOW}`);
}

/**
 * The token of a generator: of `--token-file`, else of PILLOLE_GENERATOR_TOKEN; undefined if neither is
 * set. @throws UsageError
 */
export function readToken({ env }: Terminal, tokenFile: string | undefined): Key | undefined {
  if (tokenFile !== undefined) return readSecret(tokenFile, HOW_TOKEN);
  const { PILLOLE_GENERATOR_TOKEN: token } = env;
  if (!token) return undefined;
  return { key: clean(token, 'PILLOLE_GENERATOR_TOKEN', HOW_TOKEN), warning: undefined };
}

function readSecret(file: string, how: string): Key {
  const key = clean(readText(file), file, how);
  const isOpen = process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0;
  const warning = isOpen ? `Other users can read ${file}: run chmod 600 on it.` : undefined;
  return { key, warning };
}

/** Whether an address is one of this machine. */
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
    throw new UsageError(`The file cannot be read: ${(error as Error).message}`);
  }
}

function clean(text: string, from: string, how: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]+$/.test(key) && key.length <= KEY_CHARS_MAX) return key;
  throw new UsageError(`${from} does not contain a key: one word is expected. ${how}`);
}
