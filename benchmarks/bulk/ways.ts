import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent } from 'undici';
import { request } from 'undici';

/** An API, called with the key of one account. */
export interface ApiAccess {
  readonly url: string;
  readonly key: string;
  readonly dispatcher: Agent;
}

/** What has to be fetched: the pills of these symbols in [from, to), ISO times. */
export interface Day {
  /** undefined: all; for exports only. */
  readonly symbols?: readonly string[];
  readonly from: string;
  readonly to: string;
}

/** What arrived: pills, bytes of bodies as received, and the requests that it took. */
export interface Fetched {
  readonly rows: number;
  readonly bytes: number;
  readonly requests: number;
}

/** Limits of a page of history. */
const SYMBOLS_MAX = 20;
const PAGE_PILLS = 5_000;
const POLL_MS = 250;
const ARROW = 'application/vnd.apache.arrow.stream';

/** The three ways to get a day. */
export const WAYS = ['JSON pages', 'Arrow pages', 'export'] as const;
export type Way = (typeof WAYS)[number];

/** Fetches a day in one of the ways. @throws if an answer is not what it should be */
export function fetchDay(api: ApiAccess, way: Way, day: Day): Promise<Fetched> {
  if (way === 'export') return fetchExport(api, day);
  return fetchPages(api, way === 'JSON pages' ? 'application/json' : ARROW, day);
}

/** Pages of history, one request after the other; the last receipt tells how many pills there are. */
async function fetchPages(api: ApiAccess, accept: string, { symbols = [], from, to }: Day) {
  let [rows, bytes, requests] = [0, 0, 0];
  for (let at = 0; at < symbols.length; at += SYMBOLS_MAX) {
    const query = { symbols: symbols.slice(at, at + SYMBOLS_MAX).join(), from, to };
    const first = new URLSearchParams({ ...query, limit: String(PAGE_PILLS) });
    let path: string | undefined = `/api/pills?${first}`;
    let count = 0;
    while (path !== undefined) {
      const { headers, body } = await call(api, 'GET', path, { accept });
      bytes += body.length;
      requests += 1;
      count = Number(/count=(\d+)/.exec(String(headers['pill-receipt']))?.[1]);
      path = /<([^>]+)>; rel="next"/.exec(String(headers.link ?? ''))?.[1];
    }
    rows += count;
  }
  return { rows, bytes, requests };
}

/** An export in Parquet, from its request to the last byte of its file, whose SHA-256 is checked. */
async function fetchExport(api: ApiAccess, day: Day): Promise<Fetched> {
  let info = await createExport(api, day);
  let requests = 1;
  while (info.state === 'waiting' || info.state === 'running') {
    await sleep(POLL_MS);
    info = await readExport(api, info.id);
    requests += 1;
  }
  if (info.file === null) throw new Error(`The export is ${info.state}: ${info.problem}.`);
  const { body } = await call(api, 'GET', info.file.url);
  if (createHash('sha256').update(body).digest('hex') !== info.file.sha256) {
    throw new Error('The file of the export has another SHA-256.');
  }
  return { rows: info.file.receipt.count, bytes: body.length, requests: requests + 1 };
}

export interface ExportInfo {
  readonly id: string;
  readonly state: string;
  readonly problem: string | null;
  readonly progress: { readonly rows: number };
  readonly file: {
    readonly url: string;
    readonly bytes: number;
    readonly sha256: string;
    readonly receipt: { readonly count: number };
  } | null;
}

export async function createExport(
  api: ApiAccess,
  { symbols, from, to }: Day,
  format = 'parquet',
): Promise<ExportInfo> {
  const json = { symbols, from, to, format };
  const { body } = await call(api, 'POST', '/api/exports', { json });
  return JSON.parse(body.toString()) as ExportInfo;
}

export async function readExport(api: ApiAccess, id: string): Promise<ExportInfo> {
  const { body } = await call(api, 'GET', `/api/exports/${id}`);
  return JSON.parse(body.toString()) as ExportInfo;
}

/** Cancels an export, or removes a finished one. */
export async function removeExport(api: ApiAccess, id: string): Promise<void> {
  await call(api, 'DELETE', `/api/exports/${id}`);
}

/** @throws for a status that is not 2xx */
export async function call(
  { url, key, dispatcher }: ApiAccess,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  { accept = '*/*', range, json }: Partial<{ accept: string; range: string; json: object }> = {},
) {
  const answer = await request(`${url}${path}`, {
    method,
    dispatcher,
    headers: {
      ...{ 'x-api-key': key, accept, ...(range && { range }) },
      ...(json && { 'content-type': 'application/json' }),
    },
    ...(json && { body: JSON.stringify(json) }),
  });
  const body = Buffer.from(await answer.body.arrayBuffer());
  if (answer.statusCode < 300) return { headers: answer.headers, body };
  throw new Error(`${method} ${path}: HTTP ${answer.statusCode} ${body.toString().slice(0, 300)}`);
}
