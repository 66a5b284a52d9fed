import { parseStrictJsonArray } from '../../lib/strict-json.ts';
import type { Fault } from '../../schemas/fault.ts';
import { type Pill, parsePill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { isNdjsonType } from '../http/media-type.ts';
import type { Intake } from './intake.ts';
import { INGEST_LIMITS } from './limits.ts';
import { joinFaults, readPill } from './pill-route.ts';

/** One row of a batch, in the order of the batch. */
export type BatchRow =
  | { readonly pill: Pill }
  | { readonly faults: readonly Fault[]; readonly id?: string };

export type ReadBatch =
  | { readonly ok: true; readonly rows: readonly BatchRow[] }
  | { readonly ok: false; readonly faults: readonly Fault[] };

type Rules = Pick<Intake, 'settings' | 'skew'>;

const ROWS_MAX = INGEST_LIMITS.batchRowsMax;
const NEWLINE = 0x0a;

/** Reads the rows of a batch; a fault of one row leaves the others as they are. */
export function readBatch(
  body: Buffer,
  contentType: string,
  rules: Rules,
  receivedAt: Micros,
): ReadBatch {
  return isNdjsonType(contentType)
    ? readLines(body, rules, receivedAt)
    : readArray(body, rules, receivedAt);
}

function readArray(body: Buffer, { settings, skew }: Rules, receivedAt: Micros): ReadBatch {
  const parsed = parseStrictJsonArray(body, INGEST_LIMITS.jsonDepthMax);
  if (!parsed.ok) return parsed;
  const wrong = faultOfLength(parsed.rows.length);
  if (wrong !== undefined) return wrong;
  const pillRules = { confidenceMax: settings.confidence_max, now: skew.checkedClock(receivedAt) };
  const rows = parsed.rows.map((value, index): BatchRow => {
    const pill = parsePill(value, pillRules);
    const faults = parsed.faults.get(index);
    if (pill.ok && faults === undefined) return { pill: pill.pill };
    return refused(joinFaults(faults ?? [], pill.ok ? [] : pill.faults), value);
  });
  return { ok: true, rows };
}

function readLines(body: Buffer, rules: Rules, receivedAt: Micros): ReadBatch {
  const rows: BatchRow[] = [];
  for (let start = 0; start < body.length; ) {
    const found = body.indexOf(NEWLINE, start);
    const end = found < 0 ? body.length : found;
    const line = body.subarray(start, end);
    start = end + 1;
    if (isBlank(line)) continue;
    if (rows.length === ROWS_MAX) return faultOfLength(ROWS_MAX + 1)!;
    const parsed = readPill(line, rules, receivedAt);
    rows.push('pill' in parsed ? parsed : refused(parsed.faults, parsed.value));
  }
  return faultOfLength(rows.length) ?? { ok: true, rows };
}

// JSON's white space (RFC 8259 section 2); the carriage return of CRLF is part of it.
function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

function faultOfLength(rows: number): (ReadBatch & { ok: false }) | undefined {
  if (rows >= 1 && rows <= ROWS_MAX) return undefined;
  const code = rows === 0 ? 'batch_empty' : 'batch_too_long';
  const detail = rows === 0 ? 'No pill in it.' : `More than ${ROWS_MAX} pills; split it.`;
  return { ok: false, faults: [{ pointer: '#', code, detail }] };
}

function refused(faults: readonly Fault[], value: unknown): BatchRow {
  const told = faults.slice(0, INGEST_LIMITS.rowFaultsToldMax);
  const id = (value as { readonly id?: unknown } | null | undefined)?.id;
  // Told back only where it can be told: a row's id helps to find the row.
  const isTold = typeof id === 'string' && id.length <= 128 && id.isWellFormed();
  return isTold ? { faults: told, id } : { faults: told };
}
