import type { RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { HEALTH_HOURS, readHealth } from '../../../domain/webhooks/deliveries/attempt-health.ts';
import {
  ATTEMPTS_PAGE,
  type Attempt,
  attemptToken,
  OUTCOMES,
  readAttempts,
  readAttemptToken,
  readPosted,
} from '../../../domain/webhooks/deliveries/attempt-rows.ts';
import {
  DELIVERY_LIMITS,
  resendPosted,
  resendStored,
} from '../../../domain/webhooks/deliveries/stored-messages.ts';
import { formatTimestamp, type Micros, parseTimestamp } from '../../../schemas/timestamp.ts';
import { answerOf, bodyOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf } from '../server/caller.ts';
import { ruled } from '../server/form.ts';
import { nextPage } from '../server/next-page.ts';
import { parameterFault } from '../server/parameters.ts';
import { limitOf, Next, PAGE_HINT, STRICT, timeOf } from '../server/schemas.ts';
import {
  AttemptBody,
  HealthBody,
  MessageBody,
  MessageId,
  messageParams,
  Queued,
} from './delivery-schemas.ts';
import { readLog } from './read-log.ts';
import { findEndpoint, READS_DELIVERIES, WRITES } from './rules.ts';
import { endpointParams as params } from './schemas.ts';
import type { Webhooks } from './webhook-deps.ts';

const { max, byDefault } = ATTEMPTS_PAGE;

/** The log of attempts in ClickHouse, and resending the messages that it still has. */
export function attemptRoutes(webhooks: Webhooks): RouteOptions[] {
  return [
    listAttempts(webhooks),
    showHealth(webhooks),
    resendMessage(webhooks),
    showMessage(webhooks),
  ];
}

function listAttempts(webhooks: Webhooks): RouteOptions {
  const { endpoints, select } = webhooks;
  return accountRoute({
    method: 'GET',
    url: '/api/webhooks/:id/attempts',
    ...READS_DELIVERIES,
    summary: 'List the attempts of the last 30 days, newest first',
    description: 'The log is updated about once a second.',
    params,
    query: Type.Object(
      {
        limit: limitOf(max, byDefault),
        before: Type.Optional(
          Type.String({
            pattern: ruled('^[\\x21-\\x7e]{1,130}$', 'page_unknown', PAGE_HINT),
            description: 'As in `next` of the previous page',
          }),
        ),
        message_id: Type.Optional(MessageId),
        outcome: Type.Optional(Type.Enum([...OUTCOMES])),
        status: Type.Optional(
          Type.Integer({ minimum: 0, maximum: 599, description: 'HTTP status; 0: no answer' }),
        ),
        from: Type.Optional(timeOf('Attempts that began at or after this time')),
        to: Type.Optional(timeOf('Attempts that began before this time')),
      },
      STRICT,
    ),
    answers: {
      200: answerOf('One page.', Type.Object({ data: Type.Array(AttemptBody), next: Next })),
    },
    problems: ['object_not_found', 'webhook_log_unavailable', 'query_too_large'],
    async handle(request, reply) {
      const { account } = callerOf(request);
      const { id } = request.params;
      const { limit = byDefault, before: token, ...of } = request.query;
      const before = token === undefined ? undefined : readAttemptToken(token);
      if (token !== undefined && before === undefined) {
        return refuse(reply, 'parameter_invalid', {
          errors: [parameterFault('before', 'page_unknown', PAGE_HINT)],
        });
      }
      if ((await findEndpoint(endpoints, request, reply)) === undefined) return reply;
      const times = timesOf(of);
      if ('faults' in times) return refuse(reply, 'parameter_invalid', { errors: times.faults });
      const { message_id: messageId, outcome, status } = of;
      const ask = { endpointId: id, limit, before, messageId, outcome, status, ...times };
      const read = await readLog(webhooks, account.id, reply, () => readAttempts(select, ask));
      if ('refused' in read) return read.refused;
      const last = read.value.length < limit ? undefined : read.value.at(-1);
      const next = last && nextPage(request.url, { before: attemptToken(last) });
      return { data: read.value.map(attemptBody), next: next ?? null };
    },
  });
}

/** The times of a query, in µs. */
function timesOf({ from, to }: { readonly from?: string; readonly to?: string }) {
  const times: { from?: Micros; to?: Micros } = {};
  const faults = [];
  for (const [name, text] of Object.entries({ from, to })) {
    if (text === undefined) continue;
    const parsed = parseTimestamp(text);
    if (parsed.ok) times[name as 'from' | 'to'] = parsed.micros;
    else faults.push(parameterFault(name, parsed.code, parsed.detail));
  }
  return faults.length === 0 ? times : { faults };
}

function showHealth(webhooks: Webhooks): RouteOptions {
  const { endpoints, select } = webhooks;
  return accountRoute({
    method: 'GET',
    url: '/api/webhooks/:id/health',
    ...READS_DELIVERIES,
    summary: 'Count the attempts by hour, with their latency',
    description: 'Hours without an attempt are left out. The log is updated about once a second.',
    params,
    query: Type.Object({ hours: limitOf(HEALTH_HOURS.max, HEALTH_HOURS.byDefault) }, STRICT),
    answers: {
      200: answerOf('Oldest hour first.', Type.Object({ data: Type.Array(HealthBody) })),
    },
    problems: ['object_not_found', 'webhook_log_unavailable', 'query_too_large'],
    async handle(request, reply) {
      const { account } = callerOf(request);
      const { hours = HEALTH_HOURS.byDefault } = request.query;
      if ((await findEndpoint(endpoints, request, reply)) === undefined) return reply;
      const ask = { endpointId: request.params.id, hours };
      const read = await readLog(webhooks, account.id, reply, () => readHealth(select, ask));
      if ('refused' in read) return read.refused;
      const data = read.value.map(({ hour_s: hourS, p50_us: p50, p99_us: p99, ...counts }) => ({
        hour: formatTimestamp(hourS * 1_000_000),
        ...counts,
        p50_ms: Math.round(p50 / 10) / 100,
        p99_ms: Math.round(p99 / 10) / 100,
      }));
      return { data };
    },
  });
}

function resendMessage(webhooks: Webhooks): RouteOptions {
  const { db, endpoints, select } = webhooks;
  return accountRoute({
    method: 'POST',
    url: '/api/webhooks/:id/deliveries/:message_id/resend',
    ...WRITES,
    summary: 'Post a message again, delivered or not, under its webhook-id',
    description:
      `For messages of the last ${DELIVERY_LIMITS.keptDays} days. The message gets all attempts ` +
      'again, and `max_age_s` counts from now.',
    params: messageParams,
    answers: { 202: answerOf('The message is queued.', Queued) },
    problems: ['object_not_found', 'state_conflict', 'webhook_log_unavailable', 'query_too_large'],
    ifUnknown:
      'Send the request again: a message is queued only once, however often it is requested.',
    async handle(request, reply) {
      const { account } = callerOf(request);
      const { id, message_id: messageId } = request.params;
      if ((await findEndpoint(endpoints, request, reply, ['enabled'])) === undefined) return reply;
      if (!(await resendStored(db, account.id, id, messageId))) {
        const read = await readLog(webhooks, account.id, reply, () =>
          readPosted(select, id, messageId),
        );
        if ('refused' in read) return read.refused;
        if (read.value === undefined) return refuse(reply, 'object_not_found');
        await resendPosted(db, account.id, id, read.value);
      }
      return reply.code(202).send({ message_id: messageId });
    },
  });
}

function showMessage(webhooks: Webhooks): RouteOptions {
  const { endpoints, select } = webhooks;
  return accountRoute({
    method: 'GET',
    url: '/api/webhooks/:id/deliveries/:message_id',
    ...READS_DELIVERIES,
    summary: 'Read a message with its body, as it was posted',
    description: `Messages of the last ${DELIVERY_LIMITS.keptDays} days that had an attempt.`,
    params: messageParams,
    answers: { 200: answerOf('The message.', MessageBody) },
    problems: ['object_not_found', 'webhook_log_unavailable', 'query_too_large'],
    async handle(request, reply) {
      const { account } = callerOf(request);
      const { id, message_id: messageId } = request.params;
      if ((await findEndpoint(endpoints, request, reply)) === undefined) return reply;
      const read = await readLog(webhooks, account.id, reply, () =>
        readPosted(select, id, messageId),
      );
      if ('refused' in read) return read.refused;
      if (read.value === undefined) return refuse(reply, 'object_not_found');
      const { type, ...message } = read.value;
      return bodyOf(MessageBody, { ...message, messageId, eventType: type });
    },
  });
}

function attemptBody(attempt: Attempt) {
  return bodyOf(AttemptBody, {
    ...attempt,
    at: formatTimestamp(attempt.at),
    status: attempt.status === 0 ? null : attempt.status,
    reason: attempt.reason === '' ? null : attempt.reason,
    detail: attempt.detail === '' ? null : attempt.detail,
    latency_ms: attempt.latency_us / 1_000,
    since_received_ms: attempt.pills === 0 ? null : attempt.since_received_us / 1_000,
  });
}
