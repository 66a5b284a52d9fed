import { decimalSeconds } from '../../lib/clickhouse/clickhouse-client.ts';
import type { RefusalReport, RejectedRecord } from '../../schemas/avro.ts';

/** Bytes of a body that the table keeps. The topic of rejected records has more of each. */
export const BODY_BYTES_MAX = 2 * 1024;

/** Rows of one table; each reading of a record gives the same rows, which the table keeps once. */
export interface Rows {
  readonly table: 'rejected' | 'refusal_counts';
  readonly values: readonly Readonly<Record<string, string | number>>[];
}

/** The row of a record of `pills.rejected.v1`. */
export function rowsOfRejected(record: RejectedRecord): readonly Rows[] {
  const { epoch, partition, offset, appended_at: at, code, reason, source } = record;
  const row = {
    at: decimalSeconds(at),
    origin: `${epoch}:${partition}-${offset}`,
    channel: 'log',
    source: source ?? '',
    code,
    fault: '',
    reason,
    body: textOf(record.value ?? Buffer.alloc(0)),
    body_bytes: record.value_bytes,
  };
  return [{ table: 'rejected', values: [row] }];
}

/** The rows of a record of `pills.refused.v1`. */
export function rowsOfReport({ reporter, counts, samples }: RefusalReport): readonly Rows[] {
  const refused = samples.map(({ number, at, body, ...of }) => ({
    ...of,
    at: decimalSeconds(at),
    origin: `http:${reporter}-${number}`,
    channel: 'http',
    body: textOf(body),
  }));
  const counted = counts.map(({ since, ...of }) => ({
    ...of,
    since: since / 1e6,
    reporter,
  }));
  return [
    { table: 'rejected', values: refused },
    { table: 'refusal_counts', values: counted },
  ];
}

/** Bytes as text; Avro and damaged text have bytes that are none, which become U+FFFD. */
function textOf(bytes: Buffer): string {
  return bytes.subarray(0, BODY_BYTES_MAX).toString('utf8');
}
