import { readFileSync } from 'node:fs';
import path from 'node:path';
import { bearerTokens } from '../auth/auth.ts';
import type { Client } from '../client.ts';
import { createClient, type NodeClient } from '../index.ts';
import { isLocal, readKey, readToken } from './api-key.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';

/** Options of every command that uses the API. */
export interface ConnectionOptions {
  readonly apiUrl?: string;
  readonly streamUrl?: string;
  readonly keyFile?: string;
  readonly json?: boolean;
}

/** Options of commands for the owner of a generator. */
export interface GeneratorOptions {
  readonly apiUrl?: string;
  readonly tokenFile?: string;
  readonly json?: boolean;
}

/** The address, and the token if one is set: a stack on this machine may need none. @throws UsageError */
export function generatorAccess(terminal: Terminal, options: GeneratorOptions) {
  const { apiUrl } = addressesOf(terminal, options);
  const { key: token, warning } = readToken(terminal, options.tokenFile) ?? {};
  if (warning !== undefined) writeLine(terminal.stderr, `Warning: ${warning}`);
  if (token !== undefined) warnUnencrypted(terminal, apiUrl, 'token');
  const auth = token === undefined ? undefined : bearerTokens(() => token);
  return { apiUrl, credentials: { key: undefined, auth } };
}

/** A client for the addresses and the key in use. @throws UsageError */
export function connect(terminal: Terminal, options: ConnectionOptions): NodeClient {
  const { apiUrl } = addressesOf(terminal, options);
  return createClient({ apiUrl, key: keyFor(terminal, options, apiUrl) });
}

/** A client with streams; the API provides their address if none is set. @throws UsageError */
export async function connectStream(
  terminal: Terminal,
  options: ConnectionOptions,
): Promise<Client> {
  const { apiUrl, streamUrl: named } = addressesOf(terminal, options);
  const key = keyFor(terminal, options, apiUrl);
  const streamUrl = named ?? (await createClient({ apiUrl, key }).account()).services.stream;
  if (streamUrl === undefined)
    throw new UsageError('The address of streams is unknown: use --stream-url.');
  warnUnencrypted(terminal, streamUrl);
  return createClient({ apiUrl, streamUrl, key });
}

function keyFor(terminal: Terminal, { keyFile }: ConnectionOptions, apiUrl: string): string {
  const { key, warning } = readKey(terminal, keyFile, apiUrl);
  if (warning !== undefined) writeLine(terminal.stderr, `Warning: ${warning}`);
  warnUnencrypted(terminal, apiUrl);
  return key;
}

function warnUnencrypted({ stderr }: Terminal, url: string, what = 'key'): void {
  if (/^(http|ws):/.test(url) && !isLocal(url)) {
    writeLine(stderr, `Warning: the ${what} is sent unencrypted to ${url}.`);
  }
}

/** Addresses of the flags, else of the environment, else of the stack in this folder. */
function addressesOf(
  terminal: Terminal,
  options: ConnectionOptions,
): { readonly apiUrl: string; readonly streamUrl: string | undefined } {
  const { env, folder } = terminal;
  const named = options.apiUrl ?? env.PILLOLE_API_URL;
  const stack = named === undefined ? readStack(folder) : undefined;
  const apiUrl = named ?? stack?.api;
  if (apiUrl === undefined) {
    throw new UsageError(
      'The address of the platform is unknown: set PILLOLE_API_URL, or use --api-url. ' +
        `(No stack is running in ${folder}.)`,
    );
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
  throw new UsageError(`"${url}" is not a valid address: ${expected} is expected.`);
}

/** The addresses that `npm start` writes. */
function readStack(folder: string): { api?: string; stream?: string } | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, '.local', 'stack.json'), 'utf8'));
  } catch {
    return undefined;
  }
}
