import type { HourOutcomes } from '../outcomes/outcomes.ts';
import type { RefusedPill } from '../outcomes/refused-pills.ts';
import { readJson } from './read-json.ts';

/** Refused pills that are read. */
const REFUSED_MAX = 50;

/** What became of the pills of a generator in the last 24 hours. */
export interface GeneratorReport {
  /** Newest hour first. */
  readonly hours: readonly HourOutcomes[];
  /** A sample, newest first. */
  readonly refused: readonly RefusedPill[];
  /** How long the platform took. */
  readonly tookMs: number;
}

/**
 * Reads the outcomes of the last 24 hours: of the token's generator, or of all without a token,
 * where ingest is open.
 * @throws as `readJson`
 */
export async function readGeneratorReport(
  token: string | undefined,
  signal: AbortSignal,
): Promise<GeneratorReport> {
  const startedMs = performance.now();
  // Headers carry no text beyond Latin-1. No token has such characters, so it is refused as it is.
  const headers = token === undefined ? {} : { authorization: `Bearer ${encodeURI(token)}` };
  const get = (name: string, query: Readonly<Record<string, string>>) =>
    readJson(`/api/generator/${name}`, query, headers, signal);
  // One after the other: the platform reads for one caller at a time, and the counts, read last,
  // are not older than the sample.
  const { data: refused } = (await get('rejected', { limit: String(REFUSED_MAX) })) as {
    readonly data: readonly RefusedPill[];
  };
  const { from, data: hours } = (await get('summary', {})) as {
    readonly from: string;
    readonly data: readonly HourOutcomes[];
  };
  const since = Date.parse(from);
  return {
    hours,
    refused: refused.filter(({ at }) => Date.parse(at) >= since),
    tookMs: performance.now() - startedMs,
  };
}
