import type { FastifyReply, FastifyRequest } from 'fastify';
import type {
  AccountAccess,
  DeskAccess,
  KeyAccess,
  MeteredCall,
  MeterVerdict,
} from '../../../domain/access/account-access.ts';
import { tierOf } from '../../../domain/access/entitlement.ts';
import type { Meter } from '../../../domain/access/meter.ts';
import { rateHeaders } from '../../../domain/access/rate-headers.ts';
import { createCounter } from '../../../lib/metrics/metrics.ts';
import type { Refusal } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { rateRefusal } from './unmetered-limits.ts';

const callsTotal = createCounter({
  name: 'pillole_api_calls_total',
  help: 'Calls with a limit, by the verdict of the meter.',
  labelNames: ['outcome'] as const,
});

export type Done = (error?: Error) => void;

declare module 'fastify' {
  interface FastifyRequest {
    /** The call that was counted, to be given back after a 5xx. */
    meteredCall: MeteredCall | undefined;
  }
}

/**
 * Counts a call of a key, or of the console, against the account's limits, and shows them; calls
 * `done`, or answers 429 or 503.
 */
export function takeCall(
  meter: Meter,
  { id: keyId, account, desk }: Pick<KeyAccess, 'id' | 'account' | 'desk'>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: Done,
): void {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const call = { account, desk, keyId, endpoint: `${method} ${request.routeOptions.url}` };
  const answer = (result: MeterVerdict) => {
    callsTotal.inc({ outcome: result.kind });
    const daily = 'daily' in result ? result.daily : meter.peek(account, desk).daily;
    reply.headers(rateHeaders({ burst: result.burst, daily }));
    if (result.kind === 'granted') {
      request.meteredCall = call;
      done();
    } else refuse(reply, ...limitRefusal(result));
  };
  const taken = meter.take(call);
  if (taken instanceof Promise) taken.then(answer, done);
  else answer(taken);
}

/** Shows the limits without counting a call. Without an active subscription there are none. */
export function showLimits(
  meter: Meter,
  reply: FastifyReply,
  account: AccountAccess,
  desk?: DeskAccess,
): void {
  if (tierOf(account, Date.now()) === undefined) return;
  reply.headers(rateHeaders(meter.peek(account, desk)));
}

function limitRefusal(result: Exclude<MeterVerdict, { kind: 'granted' }>): Refusal {
  switch (result.kind) {
    case 'unavailable':
      return ['accounts_unavailable', { retry_after_s: 1 }];
    case 'rate_limited': {
      const { burst, retryAfterS } = result;
      return rateRefusal('burst', result.of, { ...burst, retryAfterS });
    }
    case 'quota_exceeded':
      return [
        'daily_quota_exceeded',
        {
          'violated-policies': ['daily'],
          scope: result.of,
          limit: result.daily.limit,
          used: result.used,
          resets_at: result.resetsAt,
          detail: `The day begins at 00:00 UTC. All keys of the ${result.of} share the quota.`,
          retry_after_s: result.daily.resetS,
        },
      ];
  }
}
