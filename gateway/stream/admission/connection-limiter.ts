import { createTokenBuckets } from '../../../domain/access/token-buckets.ts';
import { fullBucket, tryTakeToken } from '../../../lib/rate/token-bucket.ts';
import type { Limits } from '../limits.ts';
import type { FatalName } from '../protocol/error-codes.ts';

/** Why a socket is refused. */
export interface Refusal {
  readonly code: FatalName;
  readonly message: string;
  readonly more: Readonly<Record<string, unknown>>;
}

export type ConnectionLimiter = ReturnType<typeof createConnectionLimiter>;

/**
 * Counts the connections and handshakes of one process, so that no network and no flood can use it
 * up. A rate allows a burst of the same number after an idle second; a network may have a burst of
 * `opensPerAddressMax`.
 * @param nowMs a monotonic clock, in ms
 */
export function createConnectionLimiter(
  limits: Pick<
    Limits,
    | 'connectionsMax'
    | 'connectionsPerAddressMax'
    | 'opensPerSecondMax'
    | 'silentOpensPerSecondMax'
    | 'opensPerSecondPerAddressMax'
    | 'opensPerAddressMax'
  >,
  nowMs: () => number,
) {
  const byNetwork = new Map<string, number>();
  const ofNetworks = createTokenBuckets();
  const silent = createRate(limits.silentOpensPerSecondMax, nowMs);
  const opens = createRate(limits.opensPerSecondMax, nowMs);
  let count = 0;
  return {
    /**
     * Counts a handshake: for its network first, so that one network cannot use up the rate of all;
     * one without a credential can use up only a part of it.
     * @returns false if handshakes arrive too fast to be answered over a socket
     */
    mayOpen(network: string, hasCredential: boolean): boolean {
      const { opensPerSecondPerAddressMax: perS, opensPerAddressMax: burst } = limits;
      if (ofNetworks.take(network, perS, burst, nowMs()).retryAfterS > 0) return false;
      return (hasCredential || silent.take()) && opens.take();
    },
    /** Counts a connection. @returns why it is refused; it counts until `leave` in any case */
    enter(network: string): Refusal | undefined {
      const own = (byNetwork.get(network) ?? 0) + 1;
      byNetwork.set(network, own);
      count += 1;
      if (own > limits.connectionsPerAddressMax) return full(limits.connectionsPerAddressMax);
      return count > limits.connectionsMax ? full(limits.connectionsMax) : undefined;
    },
    leave(network: string) {
      count -= 1;
      const left = (byNetwork.get(network) ?? 1) - 1;
      if (left > 0) byNetwork.set(network, left);
      else byNetwork.delete(network);
    },
  };
}

function createRate(perS: number, nowMs: () => number) {
  const bucket = fullBucket(nowMs());
  return { take: () => tryTakeToken(bucket, { perS, burst: perS }, nowMs()) };
}

function full(limit: number): Refusal {
  const message = `${limit} of ${limit} connections are open.`;
  return { code: 'connection_limit', message, more: { limit } };
}
