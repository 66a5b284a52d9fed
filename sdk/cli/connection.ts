import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Client } from '../client.ts';
import { createClient } from '../index.ts';
import { isLocal, readKey } from './key.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

/** What every command takes. */
export interface ConnectionOptions {
  readonly apiUrl?: string;
  readonly streamUrl?: string;
  readonly keyFile?: string;
  readonly json?: boolean;
}

interface Addresses {
  readonly apiUrl: string;
  readonly streamUrl: string | undefined;
}

/** A client of the platform that was named. @throws UsageError */
export function connect(terminal: Terminal, options: ConnectionOptions): Client {
  const { apiUrl } = addressesOf(terminal, options);
  return createClient({ apiUrl, key: keyFor(terminal, options, apiUrl) });
}

/** The same with streams: their address is asked of the platform where it was not named. */
export async function connectStream(
  terminal: Terminal,
  options: ConnectionOptions,
): Promise<Client> {
  const { apiUrl, streamUrl: named } = addressesOf(terminal, options);
  const key = keyFor(terminal, options, apiUrl);
  const streamUrl = named ?? (await createClient({ apiUrl, key }).account()).services.stream;
  if (streamUrl === undefined) throw new UsageError('Where are streams? Give --stream-url.');
  warnOfBare(terminal, streamUrl);
  return createClient({ apiUrl, streamUrl, key });
}

function keyFor(terminal: Terminal, { keyFile }: ConnectionOptions, apiUrl: string): string {
  const { key, warning } = readKey(terminal, { keyFile, apiUrl });
  if (warning !== undefined) writeLine(terminal.stderr, `Warning: ${warning}`);
  warnOfBare(terminal, apiUrl);
  return key;
}

function warnOfBare({ stderr }: Terminal, url: string): void {
  if (/^(http|ws):/.test(url) && !isLocal(url)) {
    writeLine(stderr, `Warning: the key travels unencrypted to ${url}.`);
  }
}

/** Flags, else the environment, else the stack that runs here. */
function addressesOf(terminal: Terminal, options: ConnectionOptions): Addresses {
  const { env, folder } = terminal;
  const named = options.apiUrl ?? env.PILLOLE_API_URL;
  const stack = named === undefined ? readStack(folder) : undefined;
  const apiUrl = named ?? stack?.api;
  if (apiUrl === undefined) {
    const how = 'Set PILLOLE_API_URL, or give --api-url.';
    throw new UsageError(`Where is the platform? ${how} (No stack runs in ${folder}.)`);
  }
  const streamUrl = options.streamUrl ?? env.PILLOLE_STREAM_URL ?? stack?.stream;
  return {
    apiUrl: checked(apiUrl, ['http:', 'https:']),
    streamUrl: streamUrl === undefined ? undefined : checked(streamUrl, ['ws:', 'wss:']),
  };
}

function checked(url: string, protocols: readonly string[]): string {
  if (URL.canParse(url) && protocols.includes(new URL(url).protocol)) return url;
  const expected = protocols.map((protocol) => `${protocol}//…`).join(' or ');
  throw new UsageError(`"${url}" is no address: ${expected} is expected.`);
}

/** `npm start` writes where its processes are. */
function readStack(folder: string): { api?: string; stream?: string } | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, '.local', 'stack.json'), 'utf8'));
  } catch {
    return undefined;
  }
}
