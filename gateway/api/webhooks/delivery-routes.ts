import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { writeAudit } from '../../../domain/accounts/audit.ts';
import {
  DELIVERY_LIMITS,
  DELIVERY_STATUSES,
  listDeliveries,
  messageTurn,
  recoverDeliveries,
} from '../../../domain/webhooks/deliveries/stored-messages.ts';
import { inTurn } from '../../../lib/postgres/in-turn.ts';
import { parseTimestamp } from '../../../schemas/timestamp.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { accountRoute } from '../server/account-route.ts';
import { requesterOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import { nextPage } from '../server/next-page.ts';
import { Before, limitOf, Next, STRICT, timeOf } from '../server/schemas.ts';
import { DeliveryBody } from './delivery-schemas.ts';
import { findEndpoint, READS_DELIVERIES, WRITES } from './rules.ts';
import { endpointParams as params } from './schemas.ts';
import type { Webhooks } from './webhook-deps.ts';

const { pageMax, pageDefault, recoveredMax, keptDays } = DELIVERY_LIMITS;

const Recovered = Type.Object({
  recovered: Type.Integer({ examples: [118] }),
  more: Type.Boolean(),
});

type DeliveryDeps = Pick<Webhooks, 'db' | 'endpoints'>;

/** Messages that wait or were given up: their list, and their recovery. */
export function deliveryRoutes(deps: DeliveryDeps): RouteOptions[] {
  return [listWaiting(deps), recoverMessages(deps)];
}

function listWaiting({ db, endpoints }: DeliveryDeps): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/webhooks/:id/deliveries',
    ...READS_DELIVERIES,
    summary: 'List messages that wait for an attempt or were given up',
    description:
      'Newest first. Delivered messages are listed with the attempts instead. failed = all ' +
      `attempts were used; expired = too old for \`max_age_s\`; both are kept ${keptDays} days.`,
    params,
    query: Type.Object(
      {
        status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])),
        limit: limitOf(pageMax, pageDefault),
        before: Before,
      },
      STRICT,
    ),
    answers: {
      200: answerOf('One page.', Type.Object({ data: Type.Array(DeliveryBody), next: Next })),
    },
    problems: ['object_not_found'],
    async handle(request, reply) {
      const { id } = request.params;
      const { status, limit = pageDefault, before } = request.query;
      if ((await findEndpoint(endpoints, request, reply)) === undefined) return reply;
      const found = await listDeliveries(db, id, { status, limit, before });
      const next =
        found.length < limit ? null : nextPage(request.url, { before: found.at(-1)!.id });
      // A settled message has no further attempt, though its row keeps the time of the last.
      const data = found.map((one) =>
        bodyOf(DeliveryBody, { ...one, next_at: one.status === 'waiting' ? one.next_at : null }),
      );
      return { data, next };
    },
  });
}

function recoverMessages({ db, endpoints }: DeliveryDeps): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/webhooks/:id/recover',
    ...WRITES,
    summary: 'Post all messages again that were given up since a given time',
    description:
      'Recovers failed and expired messages whose `settled_at` is at or after `since`, oldest ' +
      `first, at most ${recoveredMax} per call; while \`more\` is true, call again. The messages ` +
      'keep their webhook-id and get all attempts again, and `max_age_s` counts from now. For ' +
      'pills that were never queued (`backlog_full_since`), use a replay.',
    params,
    body: Type.Object({ since: timeOf('Messages settled at or after this time') }, STRICT),
    bodyExample: { since: '2026-11-20T00:00:00Z' },
    answers: { 200: answerOf('The messages are queued.', Recovered) },
    problems: ['object_not_found', 'state_conflict'],
    ifUnknown: 'Call again with the same time: messages that wait already are not posted twice.',
    async handle(request, reply) {
      const requester = requesterOf(request);
      const { id } = request.params;
      const since = parseTimestamp(request.body.since);
      if (!since.ok) {
        return refuseBody(reply, [bodyFault('/since', since.code, since.detail)]);
      }
      if ((await findEndpoint(endpoints, request, reply, ['enabled'])) === undefined) return reply;
      return inTurn(db, messageTurn(requester.accountId), async (tx) => {
        const result = await recoverDeliveries(tx, id, new Date(since.micros / 1_000));
        await writeAudit(tx, {
          ...requester,
          action: 'webhook.recovered',
          target: id,
          detail: { since: request.body.since, ...result },
        });
        return result;
      });
    },
  });
}
