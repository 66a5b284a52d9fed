import { isLoopback } from '../../../lib/config.ts';
import type { FatalName } from '../contract/error-codes.ts';
import { type Bucket, take } from './rate.ts';

export interface AdmissionLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  readonly opensPerSecondMax: number;
}

/** Why a socket that was just accepted must be told to go. */
export interface Refusal {
  readonly code: FatalName;
  readonly message: string;
  readonly more: Readonly<Record<string, unknown>>;
}

/** Counts connections, so that no address and no flood takes all there are. */
export interface Admission {
  /** @returns false when handshakes come too fast to be answered over a socket. */
  mayOpen(): boolean;
  /** Counts a connection in. @returns why it must go; it counts until `leave` all the same. */
  enter(address: string): Refusal | undefined;
  leave(address: string): void;
  readonly count: number;
}

/**
 * Creates the counters of one process. Handshakes: `opensPerSecondMax` a second, as many at once
 * after a second of silence. @param nowMs a monotonic clock, in ms
 */
export function createAdmission(limits: AdmissionLimits, nowMs: () => number): Admission {
  const byAddress = new Map<string, number>();
  const opens: Bucket = { tokens: limits.opensPerSecondMax, atMs: nowMs() };
  let count = 0;
  return {
    get count() {
      return count;
    },
    mayOpen() {
      const { opensPerSecondMax } = limits;
      return take(opens, opensPerSecondMax / 1000, opensPerSecondMax, nowMs());
    },
    enter(address) {
      const own = (byAddress.get(address) ?? 0) + 1;
      byAddress.set(address, own);
      count += 1;
      if (own > limits.connectionsPerAddressMax) return full(limits.connectionsPerAddressMax);
      return count > limits.connectionsMax ? full(limits.connectionsMax) : undefined;
    },
    leave(address) {
      count -= 1;
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left > 0) byAddress.set(address, left);
      else byAddress.delete(address);
    },
  };
}

function full(limit: number): Refusal {
  const message = `${limit} of ${limit} connections are open.`;
  return { code: 'connection_limit', message, more: { limit } };
}

/**
 * Whether a browser page may connect. Programs send no Origin. Pages of this machine may, and those
 * of the allow-list. Anything that is not an origin is refused.
 */
export function isOriginAllowed(origin: string, allowed: readonly string[]): boolean {
  if (origin === '' || allowed.includes(origin)) return true;
  if (!URL.canParse(origin)) return false;
  const { protocol, hostname } = new URL(origin);
  if (protocol !== 'http:' && protocol !== 'https:') return false;
  return isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}
