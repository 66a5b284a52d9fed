import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { type Credentials, credentialHeaders } from '../auth/auth.ts';
import { PilloleError } from '../error.ts';
import { timeText } from './history-range.ts';
import type { Receipt } from './receipt-type.ts';
import { REST_LIMITS, readAnswer } from './rest-client.ts';
import { wait } from './retry-delay.ts';

export const EXPORT_CLIENT_LIMITS = {
  pollFirstMs: 500,
  pollMaxMs: 5_000,
  /** Attempts at a download that broke; each continues where the last one ended. */
  downloadsMax: 20,
} as const;

export type ExportFormat = 'parquet' | 'arrow' | 'csv.gz' | 'ndjson.zst';

export interface ExportOptions {
  readonly from: string | Date;
  /** Exclusive. */
  readonly to: string | Date;
  /** All by default. */
  readonly symbols?: readonly string[];
  /** Only pills that pass it. */
  readonly filter?: {
    readonly min_confidence?: number;
    readonly min_spread?: number;
    readonly max_spread?: number;
    readonly states?: readonly string[];
  };
  /** `parquet` by default. */
  readonly format?: ExportFormat;
  /** The file, which is written beside and renamed. */
  readonly path: string;
  readonly onProgress?: (info: ExportInfo) => void;
  readonly signal?: AbortSignal;
}

/** An export as the API shows it. */
export interface ExportInfo {
  readonly id: string;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'canceled';
  /** The export takes the log up to here into account. */
  readonly position: string;
  readonly estimate: { readonly rows: number; readonly bytes: number; readonly calls: number };
  readonly progress: { readonly rows: number; readonly bytes: number; readonly percent: number };
  readonly problem: string | null;
  readonly file: {
    readonly url: string;
    readonly name: string;
    readonly type: string;
    readonly bytes: number;
    readonly sha256: string;
    readonly receipt: Receipt;
  } | null;
}

interface Connection {
  readonly apiUrl: string | undefined;
  readonly credentials: Credentials;
  readonly fetch: typeof globalThis.fetch;
}

/**
 * Makes an export, waits for it and downloads it; a broken download continues where it broke. The
 * length and the SHA-256 are checked before the file gets its name. One call.
 * @throws PilloleError; then nothing is at `path` that was not there before
 */
export async function runExport(to: Connection, options: ExportOptions): Promise<ExportInfo> {
  const {
    path,
    symbols,
    filter,
    format = 'parquet',
    signal = new AbortController().signal,
  } = options;
  const range = { from: timeText(options.from), to: timeText(options.to) };
  const body = { ...range, format, ...(symbols && { symbols }), ...(filter && { filter }) };
  const call = createCall(to, signal);
  let info = (await call('POST', '/api/exports', body)) as ExportInfo;
  const part = `${path}.${info.id}.part`;
  try {
    info = await waitUntilDone(call, info, options, signal);
    await download(to, call, info, part, signal);
    await rename(part, path);
    return info;
  } catch (error) {
    await rm(part, { force: true });
    // Nobody waits for it any more.
    await createCall(to, AbortSignal.timeout(2_000))('DELETE', `/api/exports/${info.id}`).catch(
      () => undefined,
    );
    throw error;
  }
}

type Call = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) => Promise<unknown>;

function createCall({ apiUrl, credentials, fetch }: Connection, signal: AbortSignal): Call {
  return async (method, path, data) => {
    if (apiUrl === undefined) {
      throw new PilloleError({ code: 'not_configured', message: 'apiUrl is not set.' });
    }
    const url = new URL(path, apiUrl);
    const body = data && JSON.stringify(data);
    const proof = await credentialHeaders(credentials, { method, url: url.href, body });
    try {
      const answer = await fetch(url.href, {
        method,
        headers: {
          accept: 'application/json',
          ...proof,
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body }),
        redirect: 'error', // a redirect must not carry the credential to another address
        signal: AbortSignal.any([signal, AbortSignal.timeout(REST_LIMITS.timeoutMs)]),
      });
      if (answer.status === 204) return undefined;
      return readAnswer(url, answer, await answer.text());
    } catch (error) {
      if (error instanceof PilloleError) throw error;
      if (signal.aborted) throw new PilloleError({ code: 'aborted', message: 'Aborted.' });
      const message = `${url.origin} cannot be reached.`;
      throw new PilloleError({ code: 'network', message, retry: 'after', cause: error });
    }
  };
}

async function waitUntilDone(
  call: Call,
  created: ExportInfo,
  { onProgress }: ExportOptions,
  signal: AbortSignal,
): Promise<ExportInfo> {
  let info = created;
  for (let delayMs: number = EXPORT_CLIENT_LIMITS.pollFirstMs; ; delayMs *= 1.3) {
    onProgress?.(info);
    if (info.state === 'done') return info;
    if (info.state !== 'waiting' && info.state !== 'running') {
      const code = info.problem ?? 'export_canceled';
      throw new PilloleError({ code, message: `The export ${info.id} is ${info.state}: ${code}.` });
    }
    await wait(Math.min(delayMs, EXPORT_CLIENT_LIMITS.pollMaxMs), signal);
    info = await readInfo(call, info.id, signal);
  }
}

async function readInfo(call: Call, id: string, signal: AbortSignal): Promise<ExportInfo> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return (await call('GET', `/api/exports/${id}`)) as ExportInfo;
    } catch (error) {
      const { retry, retryAfterMs = 0 } = error as PilloleError;
      if (retry !== 'after' || attempts >= EXPORT_CLIENT_LIMITS.downloadsMax) throw error;
      await wait(Math.max(retryAfterMs, EXPORT_CLIENT_LIMITS.pollFirstMs), signal);
    }
  }
}

async function download(
  to: Connection,
  call: Call,
  info: ExportInfo,
  part: string,
  signal: AbortSignal,
): Promise<void> {
  let { file } = info;
  const output = await open(part, 'w', 0o600);
  try {
    for (let attempts = 1; ; attempts += 1) {
      try {
        await append(to, file!, output, signal);
        break;
      } catch (error) {
        if (signal.aborted) throw new PilloleError({ code: 'aborted', message: 'Aborted.' });
        if (attempts >= EXPORT_CLIENT_LIMITS.downloadsMax) {
          const message = `The download broke ${attempts} times.`;
          throw new PilloleError({ code: 'network', message, retry: 'after', cause: error });
        }
        await wait(EXPORT_CLIENT_LIMITS.pollFirstMs * Math.min(attempts, 10), signal);
        ({ file } = await readInfo(call, info.id, signal)); // the link may have expired
      }
    }
    await output.sync();
  } finally {
    await output.close();
  }
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(part)) hash.update(chunk as Buffer);
  if (hash.digest('hex') === file!.sha256) return;
  const message = 'The file has another SHA-256 than the export: download it again.';
  throw new PilloleError({ code: 'checksum_mismatch', message });
}

/** Continues after what the file has. @throws if the body ends early */
async function append(
  { apiUrl, fetch }: Connection,
  { url, bytes, sha256 }: NonNullable<ExportInfo['file']>,
  output: FileHandle,
  signal: AbortSignal,
): Promise<void> {
  let { size: at } = await output.stat();
  if (at >= bytes) return;
  const headers: Record<string, string> = { 'accept-encoding': 'identity' };
  if (at > 0) Object.assign(headers, { range: `bytes=${at}-`, 'if-range': `"${sha256}"` });
  const answer = await fetch(new URL(url, apiUrl).href, { headers, redirect: 'error', signal });
  if (answer.status === 200) at = 0;
  else if (answer.status !== 206) throw new Error(`HTTP ${answer.status}`);
  await output.truncate(at);
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    await output.write(chunk, 0, chunk.length, at);
    at += chunk.length;
  }
  if (at < bytes) throw new Error('The body ended early.');
}
