import { createHash } from 'node:crypto';
import { PilloleError } from '../error.ts';
import type { Receipt } from './receipt-type.ts';

/**
 * A pill as pages, CSV, NDJSON, Arrow or Parquet have it. Times may be texts, `Date`s (if they have no
 * microseconds), milliseconds as number (as apache-arrow gives them), or microseconds as bigint.
 */
export interface ReceiptRow {
  readonly epoch?: string | null | undefined;
  readonly cursor: string;
  readonly id: string;
  readonly symbol: string;
  readonly timestamp: string | number | bigint | Date;
  readonly gross_spread_percent: number | string;
  readonly market_state: string;
  readonly confidence: number | string;
}

export const RECEIPT_ALGORITHM = 'pill-sha256-sum-1';

type Rows = Iterable<ReceiptRow> | AsyncIterable<ReceiptRow>;
type Place = readonly [epoch: string, partition: number, offset: number];

/**
 * Proves that `pills`, in any order, are exactly those of the receipt.
 * @throws PilloleError `receipt_mismatch`, or `receipt_unknown` for a newer algorithm
 */
export async function verifyReceipt(pills: Rows, receipt: Receipt): Promise<void> {
  if (receipt.algorithm !== RECEIPT_ALGORITHM) {
    const message = `The receipt is made by ${receipt.algorithm}: update the client.`;
    throw new PilloleError({ code: 'receipt_unknown', message });
  }
  const own = await receiptOf(pills, receipt.epoch);
  for (const name of ['count', 'first', 'last', 'digest'] as const) {
    if (own[name] === receipt[name]) continue;
    const message = `${name} is ${own[name]}, and ${receipt[name]} in the receipt: pills differ.`;
    throw new PilloleError({ code: 'receipt_mismatch', message });
  }
}

/** The receipt of some pills. @param epoch of pills that state none */
export async function receiptOf(pills: Rows, epoch: string): Promise<Receipt> {
  let count = 0;
  let sum = 0n;
  let first: Place | undefined;
  let last: Place | undefined;
  for await (const pill of pills) {
    const own = pill.epoch || epoch;
    const [partition, offset] = pill.cursor.split('-').map(Number) as [number, number];
    const place: Place = [own, partition, offset];
    if (first === undefined || isBefore(place, first)) first = place;
    if (last === undefined || isBefore(last, place)) last = place;
    const text = [
      ...[own, pill.cursor, pill.id, pill.symbol, microsOf(pill.timestamp)],
      ...[bitsOf(pill.gross_spread_percent), pill.market_state, bitsOf(pill.confidence)],
    ].join('\n');
    const hash = createHash('sha256').update(text).digest().reverse();
    sum += BigInt(`0x${hash.toString('hex')}`);
    count += 1;
  }
  const cursor = (place: Place | undefined) =>
    place === undefined ? null : `${place[1]}-${place[2]}`;
  const digest = BigInt.asUintN(256, sum).toString(16).padStart(64, '0');
  const ends = { first: cursor(first), last: cursor(last) };
  return { algorithm: RECEIPT_ALGORITHM, epoch, count, ...ends, digest };
}

const doubles = new DataView(new ArrayBuffer(8));

/** The bits of a double, as an unsigned integer. */
function bitsOf(value: number | string): bigint {
  doubles.setFloat64(0, Number(value));
  return doubles.getBigUint64(0);
}

/** Microseconds since 1970 in decimal. */
function microsOf(time: ReceiptRow['timestamp']): string {
  if (typeof time === 'bigint') return String(time);
  if (typeof time === 'number') return String(Math.round(time * 1000));
  if (time instanceof Date) return String(time.getTime() * 1000);
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$/.exec(time);
  const seconds = match === null ? Number.NaN : Date.parse(`${match[1]}Z`) / 1000;
  if (Number.isNaN(seconds)) {
    throw new PilloleError({ code: 'time_malformed', message: `${time} is no time in UTC.` });
  }
  return String(seconds * 1e6 + Number((match![2] ?? '').padEnd(6, '0')));
}

function isBefore(a: Place, b: Place): boolean {
  if (a[0] !== b[0]) return a[0] < b[0];
  return a[1] < b[1] || (a[1] === b[1] && a[2] < b[2]);
}
