import { Type } from 'typebox';
import type { ExportRow } from '../../../domain/exports/export-jobs.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { timeText } from '../../http/answer-body.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import type { Parsed } from '../server/parameters.ts';
import { RECEIPT_MEMBERS } from '../server/receipt-schema.ts';
import { MaybeTime, orNull, strict, symbolOf, Time, timeOf } from '../server/schemas.ts';
import { orderFaults, readTime } from '../server/time-range.ts';
import { EXPORT_FORMAT_NAMES, type ExportFormat, formatSpec } from './export-formats.ts';
import type { ExportRange, StoredRequest } from './export-query.ts';
import { EXPORT_LIMITS } from './limits.ts';

const { symbolsMax, statesMax } = EXPORT_LIMITS;
const Spread = Type.Number({ minimum: -1e6, maximum: 1e6 });
const State = Type.String({ minLength: 1, maxLength: 32 });

/** The body of `POST /api/exports`. */
export const ExportRequestSchema = strict({
  symbols: Type.Optional(
    Type.Array(symbolOf(), {
      minItems: 1,
      maxItems: symbolsMax,
      uniqueItems: true,
      description: 'By default all symbols except those that begin with TEST:',
    }),
  ),
  from: timeOf('Order time at or after this time'),
  to: timeOf('Order time before this time'),
  filter: Type.Optional(
    strict({
      min_confidence: Type.Optional(Type.Number({ minimum: 0 })),
      min_spread: Type.Optional(Spread),
      max_spread: Type.Optional(Spread),
      states: Type.Optional(
        Type.Array(State, { minItems: 1, maxItems: statesMax, uniqueItems: true }),
      ),
    }),
  ),
  format: Type.Enum([...EXPORT_FORMAT_NAMES], {
    description:
      'Parquet with zstd and row groups of at most 100,000 pills; Arrow IPC stream; CSV with a ' +
      'header in gzip; one JSON object a line in zstd',
  }),
});

export const EXPORT_EXAMPLE = {
  symbols: ['7203.T', '0700.HK'],
  from: '2026-11-19T00:00:00Z',
  to: '2026-11-20T00:00:00Z',
  filter: { min_confidence: 80 },
  format: 'parquet',
} as const;

/** The cost of an export, stated before. */
const Estimate = Type.Object({
  rows: Type.Integer({ description: 'Pills at most', examples: [864_000] }),
  bytes: Type.Integer({ description: 'Roughly', examples: [51_840_000] }),
  calls: Type.Integer({ description: 'Calls that the export counts as', examples: [1] }),
});

export const EstimateAnswer = Type.Object({ estimate: Estimate });

const Receipt = Type.Object(RECEIPT_MEMBERS);

/** An export as all answers show it. */
export const ExportSchema = Type.Object({
  id: Type.String({ examples: ['exp_k3yq7v2bqm9c'] }),
  state: Type.Enum(['waiting', 'running', 'done', 'failed', 'canceled']),
  request: Type.Object({}, { additionalProperties: true, examples: [EXPORT_EXAMPLE] }),
  created_at: Time,
  started_at: MaybeTime,
  finished_at: MaybeTime,
  expires_at: orNull(Type.String(), 'When the export and its file are deleted'),
  position: Type.String({
    description: 'The export takes all pills of the log up to here into account',
    examples: ['k7f3:0-95,3-140'],
  }),
  estimate: Estimate,
  progress: Type.Object({
    rows: Type.Integer({ examples: [200_000] }),
    bytes: Type.Integer({ examples: [12_000_000] }),
    percent: Type.Integer({ description: 'Of the estimated rows', examples: [23] }),
  }),
  problem: orNull(Type.String(), 'Why it failed; see GET /problems'),
  file: orNull(
    Type.Object({
      url: Type.String({ description: 'Valid until `url_expires_at`, without a key' }),
      url_expires_at: Time,
      name: Type.String({ examples: ['exp_k3yq7v2bqm9c.parquet'] }),
      type: Type.String({ examples: ['application/vnd.apache.parquet'] }),
      bytes: Type.Integer({ examples: [51_840_000] }),
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      receipt: Receipt,
    }),
    'The result, once `state` is `done`; each answer has a new link',
  ),
});

interface ExportBody {
  readonly symbols?: string[];
  readonly from: string;
  readonly to: string;
  readonly filter?: {
    readonly min_confidence?: number;
    readonly min_spread?: number;
    readonly max_spread?: number;
    readonly states?: string[];
  };
  readonly format: ExportFormat;
}

/** @returns the request, or the faults of its range */
export function readExportBody(body: ExportBody): Parsed<StoredRequest> {
  const { symbols, filter = {}, format } = body;
  const faults: ParameterFault[] = [];
  const from = readTime('from', body.from, faults);
  const to = readTime('to', body.to, faults);
  if (from === undefined || to === undefined) return { ok: false, faults };
  faults.push(...orderFaults({ since: from, until: to }));
  if (faults.length > 0) return { ok: false, faults };
  const range: ExportRange = {
    ...{ from, to, symbols, states: filter.states },
    ...{ minConfidence: filter.min_confidence, minSpread: filter.min_spread },
    maxSpread: filter.max_spread,
  };
  return { ok: true, value: { format, range } };
}

/** An export of a customer. @param link of the file, for one that is done */
export function exportBody(
  row: ExportRow,
  link: { readonly path: string; readonly expiresAtS: number } | undefined,
) {
  const {
    format,
    bytes: bytesEstimated = 0,
    asked,
  } = row.request as Record<string, never> & {
    readonly format: ExportFormat;
    readonly bytes?: number;
    readonly asked: object;
  };
  const [rows, bytes, estimated] = [row.rows_done, row.bytes, row.rows_estimated].map(Number);
  const { finished_at: finishedAt } = row;
  const { extension, mediaType } = formatSpec(format);
  const keptUntil =
    finishedAt === null ? null : new Date(finishedAt.getTime() + EXPORT_LIMITS.keptS * 1_000);
  const share = estimated === 0 ? 0 : Math.min(99, Math.floor((rows! / estimated!) * 100));
  return {
    id: row.id,
    state: row.state,
    request: asked,
    created_at: timeText(row.created_at),
    started_at: row.started_at === null ? null : timeText(row.started_at),
    finished_at: finishedAt === null ? null : timeText(finishedAt),
    expires_at: keptUntil === null ? null : timeText(keptUntil),
    position: row.position,
    estimate: { rows: estimated!, bytes: bytesEstimated, calls: 1 },
    progress: { rows: rows!, bytes: bytes!, percent: row.state === 'done' ? 100 : share },
    problem: row.problem,
    file:
      link === undefined
        ? null
        : {
            url: link.path,
            url_expires_at: formatTimestamp(link.expiresAtS * 1e6),
            name: `${row.id}.${extension}`,
            type: mediaType,
            bytes: bytes!,
            sha256: row.sha256!,
            receipt: row.receipt,
          },
  };
}
