import { createHmac } from 'node:crypto';
import { isSigned, type Pepper } from './pepper.ts';

/** How long a grant is valid. */
export const GRANT_S = 86_400;

/** A range of history that an account may fetch page by page without using up calls. */
export interface GrantedRange {
  readonly accountId: string;
  /** `*` = all symbols. */
  readonly symbol: string;
  readonly epoch: string;
  /** Cursors as in the request; `after` is undefined at the beginning of a partition. */
  readonly after: string | undefined;
  readonly until: string;
}

/** Signs a range: `<expiry in Unix seconds>.<HMAC-SHA-256, base64url>`. */
export function signGapFillGrant(range: GrantedRange, expiresAtS: number, pepper: Pepper): string {
  const mac = macOf(range, expiresAtS, pepper.current().bytes);
  return `${expiresAtS}.${mac.toString('base64url')}`;
}

/**
 * Checks the signature, account, range and expiry of a grant. @param nowS Unix seconds
 * @returns `refused` = forged, or for another account or range
 */
export function checkGapFillGrant(
  grant: string,
  range: GrantedRange,
  nowS: number,
  pepper: Pepper,
): 'granted' | 'expired' | 'refused' {
  const match = /^(\d{1,12})\.([\w-]{43})$/.exec(grant);
  if (match === null) return 'refused';
  const given = Buffer.from(match[2]!, 'base64url');
  const expiresAtS = Number(match[1]);
  if (!isSigned(pepper, given, (bytes) => macOf(range, expiresAtS, bytes))) return 'refused';
  return expiresAtS <= nowS ? 'expired' : 'granted';
}

function macOf(range: GrantedRange, expiresAtS: number, pepper: Buffer): Buffer {
  const { accountId, symbol, epoch, after, until } = range;
  const text = JSON.stringify(['fill', accountId, symbol, epoch, after ?? null, until, expiresAtS]);
  return createHmac('sha256', pepper).update(text).digest();
}
