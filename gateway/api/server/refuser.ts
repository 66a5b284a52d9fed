import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ProblemCode } from '../../http/problem-catalogue.ts';
import type { Refusal } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { REFUSALS_HELD_MAX } from '../limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Earliest time of a refusal of the credential, `performance.now()`. */
    refusableAtMs: number;
  }
}

/** Problems of a credential that is not known. */
const OF_CREDENTIALS: ReadonlySet<ProblemCode> = new Set([
  ...(['key_invalid', 'key_missing', 'session_required'] as const),
  ...(['signature_invalid', 'access_token_invalid'] as const),
]);

/**
 * Creates a function that refuses requests. An unknown credential is refused at a constant time
 * after the request, however long the check took: otherwise the time would distinguish an unknown
 * key from a revoked or expired one.
 */
export function createRefuser() {
  let held = 0;
  return (request: FastifyRequest, reply: FastifyReply, refusal: Refusal): void => {
    const leftMs = request.refusableAtMs - performance.now();
    // In a flood, refusals are not held: the process is then too busy to be timed.
    if (!OF_CREDENTIALS.has(refusal[0]) || leftMs <= 0 || held >= REFUSALS_HELD_MAX) {
      refuse(reply, ...refusal);
      return;
    }
    held += 1;
    setTimeout(() => {
      held -= 1;
      refuse(reply, ...refusal);
    }, leftMs);
  };
}
