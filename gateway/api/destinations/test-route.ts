import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { DESTINATION_TYPES } from '../../../domain/destinations/catalogue.ts';
import { DeliveryError } from '../../../domain/destinations/destination-type.ts';
import { DESTINATION_LIMITS } from '../../../domain/destinations/limits.ts';
import { AttemptError } from '../../../domain/webhooks/send/attempt-error.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { orNull } from '../server/schemas.ts';
import type { DestinationDeps } from './destination-deps.ts';
import { CHANGES, DESTINATIONS } from './rules.ts';
import { destinationParams as params } from './schemas.ts';

const { testsPerMinuteMax, testMs } = DESTINATION_LIMITS;

const Result = Type.Object({
  ok: Type.Boolean({ examples: [true] }),
  reason: orNull(Type.String({ examples: [null] }), 'Why it failed, in one word'),
  upstream_status: orNull(Type.Integer({ examples: [null] }), 'What the system answered'),
  detail: orNull(Type.String({ examples: [null] }), 'What to correct'),
  latency_ms: Type.Integer({ examples: [84] }),
});

/** Sends a test with the stored settings and credentials, paused or not. */
export function testRoute({ destinations, tests, egress }: DestinationDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/destinations/:id/test',
    ...DESTINATIONS,
    access: CHANGES,
    summary: 'Send a test object to a destination, and report the result',
    description: `At most ${testsPerMinuteMax} tests a minute; each takes at most ${testMs / 1_000} s.`,
    params,
    answers: { 200: answerOf('The result.', Result) },
    problems: ['object_not_found', 'too_many_attempts'],
    ifUnknown: 'Send another test: it writes the same again.',
    async handle(request, reply) {
      const { id: accountId } = callerOf(request).account;
      const { id: destinationId } = request.params;
      const found = await destinations.get(accountId, destinationId);
      const secrets = await destinations.secretsOf(accountId, destinationId);
      const type = found && DESTINATION_TYPES.get(found.type);
      if (found === undefined || secrets === undefined || type === undefined) {
        return refuse(reply, 'object_not_found');
      }
      const waitS = tests.take(accountId);
      if (waitS > 0) {
        const detail = `An account can send ${testsPerMinuteMax} tests a minute.`;
        return refuse(reply, 'too_many_attempts', { detail, retry_after_s: waitS });
      }
      const { settings } = found;
      return tryOut(type.open({ destinationId, settings, secrets, egress }));
    },
  });
}

/** The egress proxy is away. */
const OURS = new DeliveryError(
  'platform_fault',
  'We could not send the test, and nothing is wrong on your side. Send it again later.',
);

async function tryOut(publisher: {
  test(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}) {
  const began = performance.now();
  const limit = AbortSignal.timeout(testMs);
  const result = (error?: DeliveryError) => ({
    ok: error === undefined,
    reason: error?.reason ?? null,
    upstream_status: error?.status ?? null,
    detail: error?.message ?? null,
    latency_ms: Math.round(performance.now() - began),
  });
  try {
    await publisher.test(limit);
    return result();
  } catch (error) {
    if (error instanceof DeliveryError) return result(error);
    if (error instanceof AttemptError) return result(OURS);
    if (!limit.aborted) throw error;
    return result(new DeliveryError('timeout', `There was no answer within ${testMs / 1_000} s.`));
  } finally {
    await publisher.close();
  }
}
