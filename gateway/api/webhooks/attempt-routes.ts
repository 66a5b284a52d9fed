import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import {
  ATTEMPTS_PAGE,
  type Attempt,
  attemptToken,
  OUTCOMES,
  readAttempts,
  readAttemptToken,
  readPosted,
} from '../../../lib/webhooks/attempts.ts';
import { DELIVERY_LIMITS, resendKept, resendPosted } from '../../../lib/webhooks/deliveries.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { refuse } from '../../http/refuse.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { STRICT } from '../account/schemas.ts';
import { callerOf } from '../caller.ts';
import { refusalOf } from '../clickhouse/refusal-of.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { fault } from '../parameters.ts';
import {
  ATTEMPT_EXAMPLE,
  AttemptBody,
  MessageId,
  messageParams,
  Next,
} from './delivery-schemas.ts';
import { DELIVERS, refuseState } from './rules.ts';
import { endpointParams as params } from './schemas.ts';
import type { Webhooks } from './webhooks.ts';

/** The log of attempts, which is in ClickHouse, and what it still has of a message. */
export function addAttemptRoutes(
  app: FastifyInstance,
  { db, endpoints, select, turnstile }: Webhooks,
): void {
  /** Reads when it is its turn, or answers why not. */
  const inTurn = async <T>(
    accountId: string,
    reply: FastifyReply,
    read: () => Promise<T>,
  ): Promise<{ readonly value: T } | { readonly refused: FastifyReply }> => {
    const leave = await turnstile.enter(accountId);
    if (leave === undefined) return { refused: refuse(reply, 'overloaded', { retry_after_s: 1 }) };
    try {
      return { value: await read() };
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return { refused: refuse(reply, ...refusalOf(error, PROBLEMS)) };
    } finally {
      leave();
    }
  };

  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/webhooks/:id/attempts',
      tag: 'webhooks',
      summary: 'Every attempt of the last 30 days, newest first',
      description: 'Written about once a second.',
      access: DELIVERS,
      params,
      query: Type.Object(
        {
          limit: Type.Optional(
            Type.Integer({
              ...{ minimum: 1, maximum: ATTEMPTS_PAGE.max, default: ATTEMPTS_PAGE.byDefault },
            }),
          ),
          before: Type.Optional(
            Type.String({ maxLength: 130, description: '`next` of the page before' }),
          ),
          message_id: Type.Optional(MessageId),
          outcome: Type.Optional(Type.Enum([...OUTCOMES])),
        },
        STRICT,
      ),
      answers: {
        200: {
          description: 'One page.',
          schema: Type.Object({ data: Type.Array(AttemptBody), next: Next }),
          example: { data: [ATTEMPT_EXAMPLE], next: null },
        },
      },
      problems: ['object_not_found', 'webhook_log_unavailable', 'query_too_large'],
      async handle(request, reply) {
        const { account } = callerOf(request);
        const { id } = request.params;
        const { limit = ATTEMPTS_PAGE.byDefault, before: token, ...of } = request.query;
        const before = token === undefined ? undefined : readAttemptToken(token);
        if (token !== undefined && before === undefined) {
          const hint = 'Not a page of this log: take `next` as it is, or leave before out.';
          return refuse(reply, 'parameter_invalid', {
            errors: [fault('before', 'page_unknown', hint)],
          });
        }
        if ((await endpoints.get(account.id, id)) === undefined) {
          return refuse(reply, 'object_not_found');
        }
        const { message_id: messageId, outcome } = of;
        const ask = { endpointId: id, limit, before, messageId, outcome };
        const read = await inTurn(account.id, reply, () => readAttempts(select, ask));
        if ('refused' in read) return read.refused;
        const next = read.value.length < limit ? null : attemptToken(read.value.at(-1)!);
        return { data: read.value.map(attemptBody), next };
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/webhooks/:id/deliveries/:message_id/resend',
      tag: 'webhooks',
      summary: 'Post one message again, delivered or not, under its webhook-id',
      description:
        `Of the last ${DELIVERY_LIMITS.keptDays} days. It has all attempts anew, and \`max_age_s\` ` +
        'counts from now.',
      access: DELIVERS,
      params: messageParams,
      answers: {
        202: {
          description: 'It waits to be posted.',
          schema: Type.Object({ message_id: Type.String() }),
          example: { message_id: 'msg_k7f3_3-132' },
        },
      },
      problems: [
        ...(['object_not_found', 'state_conflict'] as const),
        ...(['webhook_log_unavailable', 'query_too_large'] as const),
      ],
      ifUnknown: 'Send it again: a message waits once, whoever asked for it how often.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const { id, message_id: messageId } = request.params;
        const found = await endpoints.get(account.id, id);
        if (found === undefined) return refuse(reply, 'object_not_found');
        const refused = refuseState(reply, found, account);
        if (refused !== undefined) return refused;
        if (!(await resendKept(db, id, messageId))) {
          const read = await inTurn(account.id, reply, () => readPosted(select, id, messageId));
          if ('refused' in read) return read.refused;
          if (read.value === undefined) return refuse(reply, 'object_not_found');
          await resendPosted(db, id, read.value);
        }
        return reply.code(202).send({ message_id: messageId });
      },
    }),
  );
}

const PROBLEMS = {
  heavy: [
    'query_too_large',
    { detail: 'The log of this endpoint is too long to be read so: name a message_id.' },
  ],
  away: 'webhook_log_unavailable',
} as const;

function attemptBody(attempt: Attempt) {
  return {
    at: formatTimestamp(attempt.at),
    message_id: attempt.message_id,
    event_type: attempt.event_type,
    pills: attempt.pills,
    attempt: attempt.attempt,
    outcome: attempt.outcome,
    status: attempt.status === 0 ? null : attempt.status,
    reason: attempt.reason === '' ? null : attempt.reason,
    detail: attempt.detail === '' ? null : attempt.detail,
    latency_ms: attempt.latency_us / 1_000,
    since_received_ms: attempt.pills === 0 ? null : attempt.since_received_us / 1_000,
    answer: attempt.answer,
  };
}
