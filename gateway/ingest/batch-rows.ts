import { parseStrictJsonArray } from '../../lib/json/strict-json.ts';
import type { Fault } from '../../schemas/fault.ts';
import { type Pill, parsePill } from '../../schemas/pill.ts';
import { isNdjsonType } from '../http/media-type.ts';
import type { Intake } from './intake.ts';
import { INGEST_LIMITS } from './limits.ts';
import { joinFaults, pillRules, readPill } from './pill-route.ts';
import type { Received } from './receive.ts';

/** One row of a batch. */
export type BatchRow =
  | { readonly pill: Pill }
  | {
      readonly faults: readonly Fault[];
      readonly id?: string;
      /** The row as sent, or its value. */
      readonly raw: unknown;
    };

type RefusedBatch = { readonly ok: false; readonly faults: readonly Fault[] };
type ReadBatch = { readonly ok: true; readonly rows: readonly BatchRow[] } | RefusedBatch;

const ROWS_MAX = INGEST_LIMITS.batchRowsMax;
const NEWLINE = 0x0a;

/** Parses the rows of a batch; a fault of one row does not affect the others. */
export function readBatch(received: Received, intake: Intake): ReadBatch {
  const read = isNdjsonType(received.contentType) ? readLines : readArray;
  return read(received, intake);
}

function readArray({ body, receivedAt }: Received, intake: Intake): ReadBatch {
  const parsed = parseStrictJsonArray(body, INGEST_LIMITS.jsonDepthMax);
  if (!parsed.ok) return parsed;
  const fault = faultOfLength(parsed.rows.length);
  if (fault !== undefined) return fault;
  const rules = pillRules(intake, receivedAt);
  const rows = parsed.rows.map((value, index): BatchRow => {
    const pill = parsePill(value, rules);
    const faults = parsed.faults.get(index);
    if (pill.ok && faults === undefined) return { pill: pill.pill };
    return refused(joinFaults(faults ?? [], pill.ok ? [] : pill.faults), value);
  });
  return { ok: true, rows };
}

function readLines({ body, receivedAt }: Received, intake: Intake): ReadBatch {
  const rows: BatchRow[] = [];
  for (let start = 0; start < body.length; ) {
    const found = body.indexOf(NEWLINE, start);
    const end = found < 0 ? body.length : found;
    const line = body.subarray(start, end);
    start = end + 1;
    if (isBlank(line)) continue;
    if (rows.length === ROWS_MAX) return faultOfLength(ROWS_MAX + 1)!;
    const parsed = readPill(line, intake, receivedAt);
    rows.push('pill' in parsed ? parsed : refused(parsed.faults, parsed.value, line));
  }
  return faultOfLength(rows.length) ?? { ok: true, rows };
}

// JSON's white space (RFC 8259 section 2), which includes the carriage return of CRLF.
function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

function faultOfLength(rows: number): RefusedBatch | undefined {
  if (rows >= 1 && rows <= ROWS_MAX) return undefined;
  const code = rows === 0 ? 'batch_empty' : 'batch_too_long';
  const detail =
    rows === 0 ? 'The batch has no pill.' : `The batch has more than ${ROWS_MAX} pills; split it.`;
  return { ok: false, faults: [{ pointer: '#', code, detail }] };
}

function refused(faults: readonly Fault[], value: unknown, raw = value): BatchRow {
  const reported = faults.slice(0, INGEST_LIMITS.rowFaultsMax);
  const id = (value as { readonly id?: unknown } | null | undefined)?.id;
  // The id helps the sender to find the row, so it is returned if it can be printed.
  const isPrintable = typeof id === 'string' && id.length <= 128 && id.isWellFormed();
  return isPrintable ? { faults: reported, id, raw } : { faults: reported, raw };
}
