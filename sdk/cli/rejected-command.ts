import { PilloleError } from '../error.ts';
import { createRestClient, type RestClient } from '../rest/rest-client.ts';
import { wait } from '../rest/retry-delay.ts';
import { type GeneratorOptions, generatorAccess } from './connect.ts';
import { failureLines } from './error-report.ts';
import type { ExitName } from './exit-codes.ts';
import { type Terminal, writeLine } from './terminal.ts';
import { printable } from './text-table.ts';

export interface RejectedOptions extends GeneratorOptions {
  readonly follow?: boolean;
  readonly code?: string;
  readonly count?: number;
}

/** A refused pill, as GET /api/generator/rejected lists it. */
interface RefusedPill {
  readonly at: string;
  readonly origin: string;
  readonly channel: 'http' | 'log';
  readonly source: string;
  readonly code: string;
  readonly reason: string;
  readonly body: string;
}

interface Page {
  readonly data: readonly RefusedPill[];
  readonly next: string | null;
}

/** Rows of a page; the most that the platform gives. */
const PAGE = 200;
/** Pages of one look; of more new rows, the oldest are left out, and the output says so. */
const PAGES_MAX = 10;
const LOOK_EVERY_MS = 2_000;
/** Rows that are remembered, so that each is printed once. */
const SEEN_MAX = 20_000;
const BODY_CHARS_MAX = 200;

/** `pillole rejected [--follow]`: the pills of a generator that were refused, oldest first. */
export async function runRejected(terminal: Terminal, options: RejectedOptions): Promise<ExitName> {
  const { stdout, stderr, signal } = terminal;
  const { follow = false, count = 20, json = false } = options;
  const rest = createRestClient({ fetch, ...generatorAccess(terminal, options) });
  const print = async (rows: readonly RefusedPill[]) => {
    for (const row of [...rows].reverse()) {
      await writeLine(stdout, json ? JSON.stringify(row) : lineOf(row));
    }
  };
  const first = (await readPage(rest, options, signal)).data.slice(0, count);
  await print(first);
  if (!follow) return first.length === 0 ? 'no' : 'ok';
  const seen = new Set(first.map(({ origin }) => origin));
  // Rows appear within seconds, not in order; older ones than these were left out on purpose.
  const since = first.at(-1)?.at ?? '';
  while (!signal.aborted) {
    await wait(LOOK_EVERY_MS, signal);
    if (signal.aborted) break;
    const isNew = (row: RefusedPill) => row.at >= since && !seen.has(row.origin);
    const { rows, isCut } = await readNew(rest, options, signal, isNew).catch((error) => {
      if (!(error instanceof PilloleError) || error.retry !== 'after') throw error;
      for (const line of failureLines(error)) writeLine(stderr, line);
      return { rows: [], isCut: false };
    });
    if (isCut) await writeLine(stderr, `Older ones than ${rows.at(-1)!.at} are left out.`);
    for (const { origin } of rows) seen.add(origin);
    for (const origin of seen) {
      if (seen.size <= SEEN_MAX) break;
      seen.delete(origin);
    }
    await print(rows);
  }
  return signal.reason === 'interrupted' ? 'interrupted' : 'ok';
}

/** The new rows, newest first: pages are read until one has a row that is not new. */
async function readNew(
  rest: RestClient,
  options: RejectedOptions,
  signal: AbortSignal,
  isNew: (row: RefusedPill) => boolean,
) {
  const rows: RefusedPill[] = [];
  let path: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { data, next } = await readPage(rest, options, signal, path);
    const fresh = data.filter(isNew);
    rows.push(...fresh);
    if (next === null || fresh.length < data.length) return { rows, isCut: false };
    path = next;
  }
  return { rows, isCut: true };
}

async function readPage(
  rest: RestClient,
  { code }: RejectedOptions,
  signal: AbortSignal,
  path?: string,
): Promise<Page> {
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (code !== undefined) query.set('code', code);
  try {
    return await rest.get<Page>(path ?? `/api/generator/rejected?${query}`, { signal });
  } catch (error) {
    if (signal.aborted) return { data: [], next: null };
    throw error;
  }
}

function lineOf({ at, source, channel, code, reason, body }: RefusedPill): string {
  const who = source === '' ? '(unknown source)' : source;
  const text = body.length > BODY_CHARS_MAX ? `${body.slice(0, BODY_CHARS_MAX)}…` : body;
  return printable([at, who, channel, code, reason, text].join('  '));
}
