import { hash } from 'node:crypto';
import { formatCursor } from './position.ts';
import type { Micros } from './timestamp.ts';

/** Name of the way in which `digest` is computed; another way gets another name. */
export const RECEIPT_ALGORITHM = 'pill-sha256-sum-1';

/** A pill as far as a receipt covers it. */
export interface ReceiptPill {
  readonly epoch: string;
  readonly partition: number;
  readonly offset: number;
  readonly id: string;
  readonly symbol: string;
  readonly timestamp: Micros;
  readonly gross_spread_percent: number;
  readonly market_state: string;
  readonly confidence: number;
}

/** Identifies a place in the log; ordered by epoch, then partition, then offset. */
type Place = readonly [epoch: string, partition: number, offset: number];

/** Pills that were handed over, whatever their order. */
export interface ReceiptSum {
  readonly count: number;
  /** The lowest and the highest place; null: there is no pill. */
  readonly first: Place | null;
  readonly last: Place | null;
  /** Sum of the SHA-256 of all pills, modulo 2^256, 64 hex digits. */
  readonly digest: string;
}

/** What customers compare with the pills that they have. */
export interface Receipt {
  readonly algorithm: string;
  readonly epoch: string;
  readonly count: number;
  readonly first: string | null;
  readonly last: string | null;
  readonly digest: string;
}

export const EMPTY_RECEIPT: ReceiptSum = {
  count: 0,
  first: null,
  last: null,
  digest: '0'.repeat(64),
};

/** A hash is added as words of 32 bits: a third of the time of big integers. */
const HASH_WORDS = 8;
/** The sum of so many words is an exact double (2^20 × 2^32 < 2^53). */
const WORD_SUMS_MAX = 1_048_576;

const doubles = new DataView(new ArrayBuffer(8));

/**
 * The text of a pill that is hashed: eight lines, numbers as the bits of their IEEE 754 double in
 * decimal, because languages and databases write the same double in different ways.
 */
export function receiptText(pill: ReceiptPill): string {
  const { epoch, partition, offset, id, symbol, timestamp, market_state } = pill;
  return [
    ...[epoch, formatCursor(partition, offset), id, symbol, timestamp],
    ...[bitsOf(pill.gross_spread_percent), market_state, bitsOf(pill.confidence)],
  ].join('\n');
}

/** Adds pills to a receipt. Order does not matter. */
export function addToReceipt(sum: ReceiptSum, pills: readonly ReceiptPill[]): ReceiptSum {
  let { first, last } = sum;
  let digest = BigInt(`0x${sum.digest}`);
  const words = new Float64Array(HASH_WORDS);
  const flush = () => {
    for (const [at, word] of words.entries()) digest += BigInt(word) << BigInt(at * 32);
    words.fill(0);
  };
  for (const [number, pill] of pills.entries()) {
    if (number % WORD_SUMS_MAX === 0) flush();
    const place: Place = [pill.epoch, pill.partition, pill.offset];
    if (first === null || isBefore(place, first)) first = place;
    if (last === null || isBefore(last, place)) last = place;
    const sha256 = hash('sha256', receiptText(pill), 'buffer');
    for (let at = 0; at < HASH_WORDS; at += 1) words[at]! += sha256.readUInt32LE(at * 4);
  }
  flush();
  return { count: sum.count + pills.length, first, last, digest: digestText(digest) };
}

/** The receipt of all pills of two others. */
export function joinReceipts(one: ReceiptSum, other: ReceiptSum): ReceiptSum {
  const places = [one.first, one.last, other.first, other.last].filter((place) => place !== null);
  const sorted = places.sort((a, b) => (isBefore(a, b) ? -1 : 1));
  return {
    count: one.count + other.count,
    first: sorted[0] ?? null,
    last: sorted.at(-1) ?? null,
    digest: digestText(BigInt(`0x${one.digest}`) + BigInt(`0x${other.digest}`)),
  };
}

/** @param epoch the current one of the log */
export function receiptOf({ count, first, last, digest }: ReceiptSum, epoch: string): Receipt {
  const cursor = (place: Place | null) =>
    place === null ? null : formatCursor(place[1], place[2]);
  const ends = { first: cursor(first), last: cursor(last) };
  return { algorithm: RECEIPT_ALGORITHM, epoch, count, ...ends, digest };
}

/** A receipt as a dictionary of structured fields (RFC 9651), for the header `Pill-Receipt`. */
export function receiptHeader(receipt: Receipt & { readonly complete: boolean }): string {
  return Object.entries(receipt)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      if (typeof value === 'boolean') return `${name}=?${Number(value)}`;
      return `${name}=${typeof value === 'number' ? value : `"${value}"`}`;
    })
    .join(', ');
}

/** Modulo 2^256, as 64 hex digits. */
export function digestText(sum: bigint): string {
  return BigInt.asUintN(256, sum).toString(16).padStart(64, '0');
}

function isBefore(a: Place, b: Place): boolean {
  if (a[0] !== b[0]) return a[0] < b[0];
  return a[1] - b[1] < 0 || (a[1] === b[1] && a[2] < b[2]);
}

function bitsOf(value: number): bigint {
  doubles.setFloat64(0, value);
  return doubles.getBigUint64(0);
}
