import type { FastifyReply, RouteOptions } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Pepper } from '../../../domain/access/pepper.ts';
import { writeAudit } from '../../../domain/accounts/audit.ts';
import { wakeEndpoints } from '../../../domain/webhooks/deliveries/drain-jobs.ts';
import {
  clearBacklogFull,
  countWaiting,
  DELIVERY_LIMITS,
  messageTurn,
  storeMessages,
} from '../../../domain/webhooks/deliveries/stored-messages.ts';
import type { ListedEndpoint } from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import { inTurn } from '../../../lib/postgres/in-turn.ts';
import { answerOf } from '../../http/answer-body.ts';
import type { ParameterFault } from '../../http/parameter-fault.ts';
import type { Refusal } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import { parseHistoryQuery, rangeText } from '../history/history-query.ts';
import { readPage, signPage } from '../history/page-token.ts';
import { HistoryQuerySchema } from '../history/schemas.ts';
import { POSITION_EXAMPLE } from '../pills/pill-schemas.ts';
import { accountRoute } from '../server/account-route.ts';
import { requesterOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import { parameterFault } from '../server/parameters.ts';
import { orNull, PAGE_HINT, STRICT } from '../server/schemas.ts';
import { REPLAY_LIMITS, type ReplayAsk, type ReplayPart, readReplay } from './replay-part.ts';
import { findEndpoint, WRITES } from './rules.ts';
import { endpointParams as params, WEBHOOK_BODY_BYTES_MAX } from './schemas.ts';
import type { Webhooks } from './webhook-deps.ts';

const { after, until, epoch, symbol, from, to } = HistoryQuerySchema.properties;
const Range = Type.Object(
  {
    ...{ after, until, epoch, symbol, from, to },
    page: Type.Optional(
      Type.String({ maxLength: 32_768, description: '`page` of `next`, unchanged' }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ description: 'true: the messages are counted, and none is queued' }),
    ),
  },
  { ...STRICT, examples: [{ after: POSITION_EXAMPLE, page: 'eyJhdCI6Wz….<signature>' }] },
);
const Part = Type.Object({
  messages: Type.Integer({ description: 'Messages of this part', examples: [40] }),
  queued_messages: Type.Integer({
    description: 'Messages that were not queued already; 0 of a dry run',
    examples: [40],
  }),
  pills: Type.Integer({ description: 'Pills in all messages of this part', examples: [2_000] }),
  position: orNull(
    Type.String({
      description: 'For a range of the log: everything up to here is queued',
      examples: [POSITION_EXAMPLE],
    }),
  ),
  next: orNull(Range),
});

/** `POST /api/webhooks/:id/replay`: stored pills as messages. */
export function replayRoute(webhooks: Webhooks): RouteOptions {
  const { endpoints, pepper } = webhooks;
  return accountRoute({
    method: 'POST',
    url: '/api/webhooks/:id/replay',
    ...WRITES,
    summary: 'Post the pills of a range that match the filters again, as new messages',
    description:
      'The range is that of GET /api/pills: `after` and `until` in the log, or `from` and `to` ' +
      'of one symbol; an endpoint with one symbol needs no `symbol`. The messages are ' +
      `pills.published with up to ${REPLAY_LIMITS.joinedMax} pills and \`"replayed":true\`; they ` +
      'do not expire by `max_age_s` of the pills. A call reads at most ' +
      `${REPLAY_LIMITS.pillsMax} pills: send \`next\` as the next body until it is null. Message ` +
      'ids follow from endpoint, filters and range: a repeated call queues no message twice, and ' +
      'delivered messages are posted again under the same webhook-id.',
    params,
    body: Range,
    bodyExample: { after: POSITION_EXAMPLE },
    bodyBytesMax: WEBHOOK_BODY_BYTES_MAX,
    answers: {
      200: answerOf('A dry run: nothing is queued.', Part, { queued_messages: 0 }),
      202: answerOf('The messages are queued.', Part),
    },
    problems: [
      'object_not_found',
      'state_conflict',
      'webhook_backlog_full',
      'position_unknown',
      'history_behind',
      'history_unavailable',
      'history_too_heavy',
    ],
    ifUnknown: 'Send the same body again: the messages of the call keep their ids.',
    async handle(request, reply) {
      const endpoint = await findEndpoint(endpoints, request, reply, ['enabled']);
      if (endpoint === undefined) return reply;
      const asked = parseRange(request.body, endpoint, pepper);
      if ('faults' in asked) return refuseFaults(reply, asked.faults);
      const isDry = request.body.dry_run === true;
      const part = await readPart(webhooks, { endpoint, ...asked }, isDry);
      if ('length' in part) return refuseHistory(reply, part);
      const { page: _, ...range } = request.body;
      const queued = isDry
        ? 0
        : await queueMessages(webhooks, requesterOf(request), endpoint.id, range, part);
      const { messages, pills, position = null, next } = part;
      return reply.code(isDry ? 200 : 202).send({
        messages: messages.length,
        queued_messages: queued,
        pills,
        position,
        next: next === undefined ? null : { ...range, page: signPage(next, asked.text, pepper) },
      });
    },
  });
}

/** Reads the body as a query of history; `page` holds the state of the page. */
function parseRange(
  { page, dry_run: _, ...range }: Static<typeof Range>,
  { filter }: ListedEndpoint,
  pepper: Pepper,
): Pick<ReplayAsk, 'question' | 'text' | 'state'> | { readonly faults: readonly ParameterFault[] } {
  const query = new URLSearchParams(range);
  // An endpoint with a single symbol implies that symbol.
  if (!query.has('symbol') && filter.symbols.length === 1) query.set('symbol', filter.symbols[0]!);
  const parsed = parseHistoryQuery(query);
  if (!parsed.ok) return parsed;
  const text = rangeText(query);
  const state = page === undefined ? undefined : readPage(page, text, pepper);
  if (page !== undefined && state === undefined) return { faults: [PAGE_UNKNOWN] };
  return { question: parsed.value.range, text, state };
}

/** Reads the next part of the range, unless too many messages wait already to queue more. */
async function readPart(
  { db, history, epoch }: Webhooks,
  ask: Omit<ReplayAsk, 'epoch'>,
  isDry: boolean,
): Promise<ReplayPart | Refusal> {
  const { waitingMax } = DELIVERY_LIMITS;
  if (!isDry && (await countWaiting(db, ask.endpoint.id, waitingMax)) >= waitingMax) {
    return ['webhook_backlog_full', { limit: waitingMax }];
  }
  return readReplay(history, { ...ask, epoch }).catch((error): Refusal => {
    if (!(error instanceof QueryError)) throw error;
    return queryProblem(error, PROBLEMS);
  });
}

/** @returns how many messages were not queued already */
async function queueMessages(
  { db }: Webhooks,
  requester: ReturnType<typeof requesterOf>,
  endpointId: string,
  range: object,
  { messages, pills }: ReplayPart,
): Promise<number> {
  return inTurn(db, messageTurn(requester.accountId), async (tx) => {
    const kept = await storeMessages(tx, endpointId, messages);
    if (kept > 0) await wakeEndpoints(tx, [endpointId]);
    await clearBacklogFull(tx, endpointId);
    await writeAudit(tx, {
      ...requester,
      action: 'webhook.replayed',
      target: endpointId,
      detail: { ...range, messages: kept, pills },
    });
    return kept;
  });
}

const PROBLEMS = { heavy: ['history_too_heavy', {}], unavailable: 'history_unavailable' } as const;

/** Turns faults of history parameters into faults of the body's members. */
function refuseHistory(reply: FastifyReply, [code, members]: Refusal): FastifyReply {
  if (code !== 'parameter_invalid') return refuse(reply, code, members);
  return refuseFaults(reply, members.errors as readonly ParameterFault[]);
}

function refuseFaults(reply: FastifyReply, faults: readonly ParameterFault[]): FastifyReply {
  return refuseBody(
    reply,
    faults.map(({ parameter, code, detail }) =>
      bodyFault(`/${parameter}`, code === 'missing' ? 'missing_field' : code, detail),
    ),
  );
}

const PAGE_UNKNOWN = parameterFault('page', 'page_unknown', PAGE_HINT);
