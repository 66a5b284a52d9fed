import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Static, Type } from 'typebox';
import { writeAudit } from '../../../lib/accounts/audit.ts';
import {
  acknowledgeBacklog,
  countWaiting,
  DELIVERY_LIMITS,
  keepMessages,
} from '../../../lib/webhooks/deliveries.ts';
import { wakeEndpoints } from '../../../lib/webhooks/queue.ts';
import { POSITION_LENGTH_MAX } from '../../../schemas/position.ts';
import { refuse } from '../../http/refuse.ts';
import { accountEndpoint } from '../account/account-endpoint.ts';
import { STRICT } from '../account/schemas.ts';
import { callerOf, requesterOf } from '../caller.ts';
import { refusalOf } from '../clickhouse/refusal-of.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import type { Refusal } from '../history/history.ts';
import { readPage, signPage } from '../history/page-token.ts';
import { parseHistoryQuery, questionText } from '../history/question.ts';
import { orNull } from '../or-null.ts';
import type { ParameterFault } from '../parameters.ts';
import { POSITION_EXAMPLE } from '../pill-schemas.ts';
import { REPLAY_LIMITS, readReplay } from './replay.ts';
import { DELIVERS, refuseState } from './rules.ts';
import { endpointParams as params, WEBHOOK_BODY_BYTES_MAX } from './schemas.ts';
import type { Webhooks } from './webhooks.ts';

const Place = Type.String({ maxLength: POSITION_LENGTH_MAX });
const Text = Type.String({ maxLength: 64 });
const Range = Type.Object(
  {
    after: Type.Optional(Place),
    until: Type.Optional(Place),
    epoch: Type.Optional(Text),
    symbol: Type.Optional(Text),
    from: Type.Optional(Text),
    to: Type.Optional(Text),
    page: Type.Optional(Type.String({ maxLength: 32_768, description: 'Of `next`, as it is' })),
  },
  STRICT,
);
const NEXT_EXAMPLE = { after: POSITION_EXAMPLE, page: 'eyJhdCI6Wz….<signature>' };

/** `POST /api/webhooks/:id/replay`: pills of the past as messages. */
export function addReplayRoute(app: FastifyInstance, webhooks: Webhooks): void {
  const { db, endpoints, history, epoch, pepper } = webhooks;
  app.route(
    accountEndpoint({
      method: 'POST',
      url: '/api/webhooks/:id/replay',
      tag: 'webhooks',
      summary: 'Post pills of a range again that match the filters, as new messages',
      description:
        'The range is that of GET /api/pills: `after` and `until` of the log, or `from` and `to` ' +
        'of one symbol; an endpoint of one symbol needs no `symbol`. Messages are pills.published ' +
        `with up to ${REPLAY_LIMITS.joinedMax} pills and \`"replayed":true\`, and do not expire by ` +
        `\`max_age_s\` of the pills. A call looks at ${REPLAY_LIMITS.pillsMax} pills at most: send ` +
        '`next` as the next body until it is null. Message ids follow from endpoint, filters and ' +
        'range: a call that is repeated doubles nothing that still waits, and what was delivered ' +
        'comes again under the same webhook-id.',
      access: DELIVERS,
      params,
      body: Range,
      bodyExample: { after: POSITION_EXAMPLE },
      bodyBytesMax: WEBHOOK_BODY_BYTES_MAX,
      answers: {
        202: {
          description: 'They wait to be posted.',
          schema: Type.Object({
            queued_messages: Type.Integer({ description: 'Those that did not wait already' }),
            pills: Type.Integer({ description: 'In all messages of this part' }),
            position: orNull(
              Type.String({ description: 'Of a range of the log: all up to there was queued' }),
            ),
            next: orNull(Range),
          }),
          example: {
            ...{ queued_messages: 40, pills: 2_000, position: POSITION_EXAMPLE },
            next: NEXT_EXAMPLE,
          },
        },
      },
      problems: [
        ...(['object_not_found', 'state_conflict', 'webhook_backlog_full'] as const),
        ...(['position_unknown', 'history_behind'] as const),
        ...(['history_unavailable', 'history_too_heavy'] as const),
      ],
      ifUnknown: 'Send the same body again: the messages of this call have the same ids.',
      async handle(request, reply) {
        const { account } = callerOf(request);
        const { id } = request.params;
        const endpoint = await endpoints.get(account.id, id);
        if (endpoint === undefined) return refuse(reply, 'object_not_found');
        const refused = refuseState(reply, endpoint, account);
        if (refused !== undefined) return refused;
        const { page: token, ...range } = request.body;
        const query = queryOf(range, endpoint.filter.symbols);
        const parsed = parseHistoryQuery(query);
        if (!parsed.ok) return refuseFaults(reply, parsed.faults);
        const text = questionText(query);
        const state = token === undefined ? undefined : readPage(token, text, pepper);
        if (token !== undefined && state === undefined) return refuseFaults(reply, [PAGE_UNKNOWN]);
        const backlogMax = DELIVERY_LIMITS.waitingMax;
        if ((await countWaiting(db, id, backlogMax)) >= backlogMax) {
          return refuse(reply, 'webhook_backlog_full', { limit: backlogMax });
        }
        const { question } = parsed.value;
        const ask = { endpoint, question, text, state, epoch };
        const part = await readReplay(history, ask).catch((error): Refusal => {
          if (!(error instanceof NoAnswer)) throw error;
          return refusalOf(error, PROBLEMS);
        });
        if ('length' in part) return refuseHistory(reply, part);
        const queued = await db.transaction().execute(async (tx) => {
          const kept = await keepMessages(tx, id, part.messages);
          if (kept > 0) await wakeEndpoints(tx, [id]);
          await acknowledgeBacklog(tx, id);
          await writeAudit(tx, {
            ...requesterOf(request),
            ...{ action: 'webhook.replayed', target: id },
            detail: { ...range, messages: kept, pills: part.pills },
          });
          return kept;
        });
        return reply.code(202).send({
          queued_messages: queued,
          pills: part.pills,
          position: part.position ?? null,
          next:
            part.next === undefined ? null : { ...range, page: signPage(part.next, text, pepper) },
        });
      },
    }),
  );
}

const PROBLEMS = { heavy: ['history_too_heavy', {}], away: 'history_unavailable' } as const;

/** The question to history; the symbol of an endpoint that has one alone is meant. */
function queryOf(
  range: Omit<Static<typeof Range>, 'page'>,
  symbols: readonly string[],
): URLSearchParams {
  const query = new URLSearchParams(range);
  if (!query.has('symbol') && symbols.length === 1) query.set('symbol', symbols[0]!);
  return query;
}

/** What history says of parameters, said of members of the body. */
function refuseHistory(reply: FastifyReply, [code, members]: Refusal): FastifyReply {
  if (code !== 'parameter_invalid') return refuse(reply, code, members);
  return refuseFaults(reply, members.errors as readonly ParameterFault[]);
}

function refuseFaults(reply: FastifyReply, faults: readonly ParameterFault[]): FastifyReply {
  const errors = faults.map(({ parameter, ...fault }) => ({ pointer: `#/${parameter}`, ...fault }));
  return refuse(reply, 'body_invalid', { errors });
}

const PAGE_UNKNOWN: ParameterFault = {
  parameter: 'page',
  code: 'page_unknown',
  detail: 'Not a page of this range: send `next` as it is, or leave page out.',
};
