import type { Fault } from '../../schemas/fault.ts';
import type { Pill } from '../../schemas/pill.ts';
import { isJsonType, isNdjsonType } from '../http/media-type.ts';
import { API_VERSION } from '../http/problems.ts';
import { type BatchRow, readBatch } from './batch-rows.ts';
import type { Intake, Outcome } from './intake.ts';
import { INGEST_LIMITS } from './limits.ts';
import { answerSeconds, countPills, countRequest } from './metrics.ts';
import { refuseStarting } from './pill-route.ts';
import { type Endpoint, type Received, refuse } from './receive.ts';

/** A row that is not ok. `unknown`: not acknowledged, sending the same again is safe. */
interface RowResult {
  readonly index: number;
  readonly id: string | null;
  readonly status: 'refused' | 'unknown';
  readonly errors?: readonly Fault[];
}

/** What became of a batch: the four counts add up to its rows. */
interface BatchResult {
  readonly status: 'ok' | 'partial';
  readonly ok: number;
  readonly replayed: number;
  readonly refused: number;
  readonly unknown: number;
  readonly results: readonly RowResult[];
}

/** `POST /api/pillole/batch`: up to 1,000 pills, each with a fate of its own. */
export function createBatchEndpoint(intake: () => Intake | undefined): Endpoint {
  return {
    bytesMax: INGEST_LIMITS.batchBytesMax,
    isType: (contentType) => isJsonType(contentType) || isNdjsonType(contentType),
    types: 'application/json or application/x-ndjson',
    handle(received) {
      const target = intake();
      if (target === undefined) return refuseStarting(received.response);
      const { body, contentType, receivedAt } = received;
      const batch = readBatch(body, contentType, target, receivedAt);
      if (!batch.ok) {
        return refuse(received.response, 'batch_invalid', { errors: batch.faults });
      }
      return submitRows(received, batch.rows, target);
    },
  };
}

async function submitRows(
  received: Received,
  rows: readonly BatchRow[],
  target: Intake,
): Promise<void> {
  const { response, source, receivedAt, at } = received;
  const deadline = at + INGEST_LIMITS.answerMs;
  const parsedAt = performance.now();
  const pills = rows.flatMap((row) => ('pill' in row ? [row.pill] : []));
  const outcomes = await target.submitAll(pills, { source, receivedAt, deadline });
  const now = performance.now();
  if (pills.length > 0) answerSeconds.observe((now - at) / 1000);
  const result = resultOf(rows, outcomes);
  countPills('ok', result.ok);
  countPills('replayed', result.replayed);
  countPills('refused', result.refused);
  countPills('unavailable', result.unknown);
  // All new rows go in one call of the producer: overloaded, it has sent none of them.
  if (outcomes.some(({ kind }) => kind === 'overloaded')) {
    return refuse(response, 'overloaded', { retry_after_s: 1 });
  }
  if (result.unknown === rows.length) {
    return refuse(response, 'log_unavailable', { stored: 'unknown', retry_after_s: 1 });
  }
  countRequest(result.status);
  const body = Buffer.from(JSON.stringify(result));
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    'api-version': API_VERSION,
    'server-timing': `parse;dur=${(parsedAt - at).toFixed(1)}, log;dur=${(now - parsedAt).toFixed(1)}`,
  });
  response.end(body);
}

function resultOf(rows: readonly BatchRow[], outcomes: readonly Outcome[]): BatchResult {
  const results: RowResult[] = [];
  let ok = 0;
  let replayed = 0;
  let unknown = 0;
  let next = 0;
  for (const [index, row] of rows.entries()) {
    if ('faults' in row) {
      results.push({ index, id: row.id ?? null, status: 'refused', errors: row.faults });
      continue;
    }
    const outcome = outcomes[next]!;
    next += 1;
    if (outcome.kind === 'stored') {
      if (outcome.replayed) replayed += 1;
      else ok += 1;
      continue;
    }
    const result = resultOfRow(index, row.pill, outcome);
    if (result.status === 'unknown') unknown += 1;
    results.push(result);
  }
  const refused = results.length - unknown;
  const status = results.length === 0 ? 'ok' : 'partial';
  return { status, ok, replayed, refused, unknown, results };
}

function resultOfRow(
  index: number,
  { id, symbol }: Pill,
  outcome: Exclude<Outcome, { kind: 'stored' }>,
): RowResult {
  switch (outcome.kind) {
    case 'conflict': {
      const detail = `${outcome.known.partition}-${outcome.known.offset} has it with other values.`;
      const errors = [{ pointer: '#/id', code: 'id_conflict', detail } as const];
      return { index, id, status: 'refused', errors };
    }
    case 'symbol_limit': {
      const detail = `${symbol} is new, and there is no room for a new one.`;
      const errors = [{ pointer: '#/symbol', code: 'symbol_limit', detail } as const];
      return { index, id, status: 'refused', errors };
    }
    case 'overloaded':
    case 'unavailable':
      return { index, id, status: 'unknown' };
  }
}
