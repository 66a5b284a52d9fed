import { createHmac } from 'node:crypto';
import { isSigned, type Pepper } from '../../../domain/access/pepper.ts';
import type { ReceiptSum } from '../../../schemas/receipt.ts';
import type { AsOf } from '../clickhouse/table-coverage.ts';

/**
 * Where a page begins. The state carries what the first page has fixed, so that later pages answer
 * the same request while new pills arrive. The token is signed and always verified.
 */
export type PageState = (PositionPageState | TimePageState) & {
  /** The pills of the earlier pages. */
  readonly receipt?: ReceiptSum;
};

export interface PositionPageState {
  /** The last offset that the previous page covered. */
  readonly at: readonly [partition: number, offset: number];
  /** The table's coverage at the first page, for a range without an end. */
  readonly stored: readonly (readonly [partition: number, offset: number])[] | null;
}

export interface TimePageState {
  /**
   * Order time (µs), epoch, offset and symbol of the last pill of the previous page, or an edge
   * between pills. Without a symbol, the request has only one.
   */
  readonly key: readonly [order: number, epoch: string, offset: number, symbol?: string];
  /** Start of a range without `from`, µs. */
  readonly from?: number;
  /** `as_of` of the first page. */
  readonly asOf: AsOf;
}

/** Longer tokens are refused unread. */
const TOKEN_CHARS_MAX = 32_768;

/** @param range the range that the page belongs to, see `rangeText` */
export function signPage(state: PageState, range: string, pepper: Pepper): string {
  const payload = Buffer.from(JSON.stringify(state)).toString('base64url');
  return `${payload}.${macOf(payload, range, pepper.current().bytes).toString('base64url')}`;
}

/** @returns undefined if the token is not ours, or belongs to another range */
export function readPage(token: string, range: string, pepper: Pepper): PageState | undefined {
  if (token.length > TOKEN_CHARS_MAX) return undefined;
  const match = /^([\w-]+)\.([\w-]{43})$/.exec(token);
  if (match === null) return undefined;
  const given = Buffer.from(match[2]!, 'base64url');
  if (!isSigned(pepper, given, (bytes) => macOf(match[1]!, range, bytes))) return undefined;
  return JSON.parse(Buffer.from(match[1]!, 'base64url').toString('utf8'));
}

function macOf(payload: string, range: string, pepper: Buffer): Buffer {
  const text = JSON.stringify(['page', range, payload]);
  return createHmac('sha256', pepper).update(text).digest();
}
