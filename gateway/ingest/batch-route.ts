import type { Fault } from '../../schemas/fault.ts';
import { identityOf, isSameContent, type Pill } from '../../schemas/pill.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { isJsonType, isNdjsonType } from '../http/media-type.ts';
import { API_VERSION } from '../http/problems.ts';
import { type BatchRow, readBatch } from './batch-rows.ts';
import { previewOf, sendPreview } from './dry-run.ts';
import type { Intake, Outcome } from './intake.ts';
import { INGEST_LIMITS } from './limits.ts';
import { answerSeconds, countPills, countRequest } from './metrics.ts';
import { type IngestRoute, type Received, refuse } from './receive.ts';
import { refusals } from './refusals.ts';
import { warningOf } from './warnings.ts';

/** A row that is not ok. `unknown`: not acknowledged, so the same row can safely be sent again. */
interface RowResult {
  readonly index: number;
  readonly id: string | null;
  readonly status: 'refused' | 'unknown';
  readonly errors?: readonly Fault[];
}

/** `POST /api/pillole/batch`: up to 1,000 pills, each with its own outcome. */
export const BATCH_ROUTE: IngestRoute = {
  path: '/api/pillole/batch',
  bytesMax: INGEST_LIMITS.batchBytesMax,
  isType: (contentType) => isJsonType(contentType) || isNdjsonType(contentType),
  types: 'application/json or application/x-ndjson',
  handle(received, intake) {
    const batch = readBatch(received, intake);
    if (!batch.ok) return refuse(received, 'batch_invalid', { errors: batch.faults });
    if (received.isDryRun) return previewRows(received, batch.rows, intake);
    return submitRows(received, batch.rows, intake);
  },
};

async function submitRows(
  received: Received,
  rows: readonly BatchRow[],
  intake: Intake,
): Promise<void> {
  const { response, source, receivedAt, at } = received;
  const deadline = at + INGEST_LIMITS.answerMs;
  const parsedAt = performance.now();
  const pills = rows.flatMap((row) => ('pill' in row ? [row.pill] : []));
  const outcomes = await intake.submitAll(pills, { source, receivedAt, deadline });
  const warning = warningOf(pills, receivedAt, intake);
  const now = performance.now();
  if (pills.length > 0) answerSeconds.observe((now - at) / 1000);
  const result = resultOf(rows, outcomes);
  countPills('ok', result.ok);
  countPills('replayed', result.replayed);
  countPills('refused', result.refused);
  countPills('unavailable', result.unknown);
  // All new rows are one call of the producer: if it is overloaded, it has sent none of them.
  if (outcomes.some(({ kind }) => kind === 'overloaded')) {
    return refuse(received, 'overloaded', { retry_after_s: 1 }, { pills: rows.length });
  }
  if (result.unknown === rows.length) {
    const members = { stored: 'unknown', retry_after_s: 1 } as const;
    return refuse(received, 'log_unavailable', members, { pills: rows.length });
  }
  countRequest(result.status);
  noteRefusals(received, rows, result);
  const body = Buffer.from(JSON.stringify(result));
  const parseMs = (parsedAt - at).toFixed(1);
  const logMs = (now - parsedAt).toFixed(1);
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'api-version': API_VERSION,
    'server-timing': `parse;dur=${parseMs}, log;dur=${logMs}`,
    ...(warning === undefined ? {} : { 'pill-warning': warning }),
  });
  response.end(body);
}

/** Answers a dry run with what would become of each row, as far as this process can know it. */
function previewRows(received: Received, rows: readonly BatchRow[], intake: Intake): undefined {
  const pills = rows.flatMap((row) => ('pill' in row ? [row.pill] : []));
  const first = new Map<string, Pill>();
  const outcomes = pills.map((pill): ReturnType<Intake['preview']> => {
    const identity = identityOf(pill);
    const earlier = first.get(identity);
    if (earlier === undefined) {
      first.set(identity, pill);
      return intake.preview(pill);
    }
    const known = { identity, pill: earlier, partition: 0, offset: -1, waiters: undefined };
    if (!isSameContent(earlier, pill)) return { kind: 'conflict', known };
    return { kind: 'stored', known, replayed: true };
  });
  let next = 0;
  const results = rows.map((row, index) => {
    if ('faults' in row) return refusedRow(index, row);
    const outcome = outcomes[next]!;
    next += 1;
    if (outcome.kind !== 'new' && outcome.kind !== 'stored') {
      return resultOfRow(index, row.pill, outcome);
    }
    const preview = previewOf(row.pill, outcome.kind, received.receivedAt, intake);
    return { index, id: row.pill.id, ...preview };
  });
  sendPreview(received.response, { results }, warningOf(pills, received.receivedAt, intake));
}

/** Counts what was not written to the log: refused rows, unknown ones, and repeats. */
function noteRefusals(
  { source, receivedAt: at }: Received,
  rows: readonly BatchRow[],
  { results, replayed, unknown }: ReturnType<typeof resultOf>,
): void {
  if (replayed > 0) refusals.note({ source, code: 'replayed', at, pills: replayed });
  if (unknown > 0) refusals.note({ source, code: 'log_unavailable', at, pills: unknown });
  for (const { index, errors: faults } of results) {
    if (faults === undefined) continue;
    const row = rows[index]!;
    const [fault] = faults;
    const isOwn = fault?.code === 'id_conflict' || fault?.code === 'symbol_limit';
    const code = isOwn ? fault.code : 'pill_invalid';
    refusals.note({ source, code, at, faults, body: () => bytesOf(row) });
  }
}

function bytesOf(row: BatchRow): Buffer {
  if ('faults' in row) {
    return Buffer.isBuffer(row.raw) ? row.raw : Buffer.from(JSON.stringify(row.raw) ?? '');
  }
  return Buffer.from(
    JSON.stringify({ ...row.pill, timestamp: formatTimestamp(row.pill.timestamp) }),
  );
}

/** The outcome of a batch; the four counts add up to its rows. */
function resultOf(rows: readonly BatchRow[], outcomes: readonly Outcome[]) {
  const counts = { ok: 0, replayed: 0, refused: 0, unknown: 0 };
  const results: RowResult[] = [];
  let next = 0;
  for (const [index, row] of rows.entries()) {
    if ('faults' in row) {
      counts.refused += 1;
      results.push(refusedRow(index, row));
      continue;
    }
    const outcome = outcomes[next]!;
    next += 1;
    if (outcome.kind === 'stored') {
      counts[outcome.replayed ? 'replayed' : 'ok'] += 1;
      continue;
    }
    const result = resultOfRow(index, row.pill, outcome);
    counts[result.status] += 1;
    results.push(result);
  }
  return { status: results.length === 0 ? 'ok' : 'partial', ...counts, results };
}

function refusedRow(index: number, row: Extract<BatchRow, { faults: unknown }>): RowResult {
  return { index, id: row.id ?? null, status: 'refused', errors: row.faults };
}

function resultOfRow(
  index: number,
  { id, symbol }: Pill,
  outcome: Exclude<Outcome, { kind: 'stored' }>,
): RowResult {
  const refused = (pointer: string, code: Fault['code'], detail: string): RowResult => ({
    index,
    id,
    status: 'refused',
    errors: [{ pointer, code, detail }],
  });
  if (outcome.kind === 'conflict') {
    const { partition, offset } = outcome.known;
    const where = offset < 0 ? 'An earlier row' : `The pill at ${partition}-${offset}`;
    const detail = `${where} has this id but other values.`;
    return refused('#/id', 'id_conflict', detail);
  }
  if (outcome.kind !== 'symbol_limit') return { index, id, status: 'unknown' };
  const detail = `${symbol} is a new symbol, and the system holds its maximum of symbols.`;
  return refused('#/symbol', 'symbol_limit', detail);
}
