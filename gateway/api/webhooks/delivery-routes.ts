import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { writeAudit } from '../../../lib/accounts/audit.ts';
import {
  DELIVERY_LIMITS,
  DELIVERY_STATUSES,
  type Delivery,
  listDeliveries,
  recoverDeliveries,
} from '../../../lib/webhooks/deliveries.ts';
import { parseTimestamp } from '../../../schemas/timestamp.ts';
import { refuse } from '../../http/refuse.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { STRICT } from '../account/schemas.ts';
import { callerOf, requesterOf } from '../caller.ts';
import { DELIVERY_EXAMPLE, DeliveryBody, Next } from './delivery-schemas.ts';
import { DELIVERS, refuseState } from './rules.ts';
import { endpointParams as params } from './schemas.ts';
import type { Webhooks } from './webhooks.ts';

const { pageMax, pageDefault, recoveredMax, keptDays } = DELIVERY_LIMITS;

/** Messages that wait or were given up: what there is, and another life for them. */
export function addDeliveryRoutes(
  app: FastifyInstance,
  { db, endpoints }: Pick<Webhooks, 'db' | 'endpoints'>,
): void {
  app.route(
    accountEndpoint({
      method: 'GET',
      url: '/api/webhooks/:id/deliveries',
      tag: 'webhooks',
      summary: 'Messages that wait for an attempt, and those that were given up',
      description:
        `Newest first. Delivered ones are not among them: see the attempts. failed = all attempts ` +
        `were used; expired = too old for \`max_age_s\`; both are kept ${keptDays} days.`,
      access: DELIVERS,
      params,
      query: Type.Object(
        {
          status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])),
          limit: Type.Optional(
            Type.Integer({ minimum: 1, maximum: pageMax, default: pageDefault }),
          ),
          before: Type.Optional(
            Type.String({ pattern: '^\\d{1,18}$', description: '`next` of the page before' }),
          ),
        },
        STRICT,
      ),
      answers: {
        200: {
          description: 'One page.',
          schema: Type.Object({ data: Type.Array(DeliveryBody), next: Next }),
          example: { data: [DELIVERY_EXAMPLE], next: null },
        },
      },
      problems: ['object_not_found'],
      async handle(request, reply) {
        const { id } = request.params;
        const { status, limit = pageDefault, before } = request.query;
        if ((await endpoints.get(callerOf(request).account.id, id)) === undefined) {
          return refuse(reply, 'object_not_found');
        }
        const found = await listDeliveries(db, id, { status, limit, before });
        const next = found.length < limit ? null : found.at(-1)!.id;
        return { data: found.map(deliveryBody), next };
      },
    }),
  );
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/webhooks/:id/recover',
      tag: 'webhooks',
      summary: 'Post everything again that was given up since a time',
      description:
        `Failed and expired messages whose \`settled_at\` is at or after \`since\`, oldest first, at ` +
        `most ${recoveredMax} a call; with \`more\` call again. They keep their webhook-id, have all ` +
        'attempts anew, and `max_age_s` counts from now: they are old, and you want them. Pills ' +
        'that were never kept (`backlog_full_since`) are had by a replay.',
      access: DELIVERS,
      params,
      body: Type.Object({ since: Type.String({ description: 'RFC 3339' }) }, STRICT),
      bodyExample: { since: '2026-11-20T00:00:00Z' },
      answers: {
        200: {
          description: 'They wait now.',
          schema: Type.Object({ recovered: Type.Integer(), more: Type.Boolean() }),
          example: { recovered: 118, more: false },
        },
      },
      problems: ['object_not_found', 'state_conflict'],
      ifUnknown: 'Call again with the same time: what waits already is not posted twice.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const { id } = request.params;
        const since = parseTimestamp(request.body.since);
        if (!since.ok) {
          const { code, detail } = since;
          return refuse(reply, 'body_invalid', { errors: [{ pointer: '#/since', code, detail }] });
        }
        const found = await endpoints.get(account.id, id);
        if (found === undefined) return refuse(reply, 'object_not_found');
        const refused = refuseState(reply, found, account);
        if (refused !== undefined) return refused;
        return db.transaction().execute(async (tx) => {
          const result = await recoverDeliveries(tx, id, new Date(since.micros / 1_000));
          await writeAudit(tx, {
            ...requesterOf(request),
            ...{ action: 'webhook.recovered', target: id },
            detail: { since: request.body.since, ...result },
          });
          return result;
        });
      },
    }),
  );
}

function deliveryBody(delivery: Delivery) {
  const { status, next_at, settled_at } = delivery;
  return {
    message_id: delivery.message_id,
    event_type: delivery.event_type,
    pills: delivery.pills,
    occurred_at: delivery.occurred_at.toISOString(),
    status,
    attempts: delivery.attempts,
    next_at: status === 'waiting' ? next_at.toISOString() : null,
    last_status: delivery.last_status,
    last_reason: delivery.last_reason,
    created_at: delivery.created_at.toISOString(),
    settled_at: settled_at?.toISOString() ?? null,
  };
}
