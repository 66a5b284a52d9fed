import { createHmac, timingSafeEqual } from 'node:crypto';

/** A stretch of history that an account may fetch, page by page, without a call being counted. */
export interface GrantedRange {
  readonly accountId: string;
  /** `*` is all symbols. */
  readonly symbol: string;
  readonly epoch: string;
  /** Cursors as they stand in the request; `after` is undefined at a partition's beginning. */
  readonly after: string | undefined;
  readonly until: string;
}

/** Signs a range: `<Unix seconds of its end>.<HMAC-SHA-256, base64url>`. */
export function signGrant(range: GrantedRange, expiresAtS: number, pepper: Buffer): string {
  return `${expiresAtS}.${macOf(range, expiresAtS, pepper).toString('base64url')}`;
}

/** `refused`: forged, or for another account or range. */
export type GrantVerdict = 'granted' | 'expired' | 'refused';

/** Whether a grant is ours, for this account and range, and not over. @param nowS Unix seconds */
export function checkGrant(
  grant: string,
  range: GrantedRange,
  nowS: number,
  pepper: Buffer,
): GrantVerdict {
  const match = /^(\d{1,12})\.([\w-]{43})$/.exec(grant);
  if (match === null) return 'refused';
  const given = Buffer.from(match[2]!, 'base64url');
  const expiresAtS = Number(match[1]);
  if (!timingSafeEqual(given, macOf(range, expiresAtS, pepper))) return 'refused';
  return expiresAtS <= nowS ? 'expired' : 'granted';
}

function macOf(range: GrantedRange, expiresAtS: number, pepper: Buffer): Buffer {
  const { accountId, symbol, epoch, after, until } = range;
  const text = JSON.stringify(['fill', accountId, symbol, epoch, after ?? null, until, expiresAtS]);
  return createHmac('sha256', pepper).update(text).digest();
}
