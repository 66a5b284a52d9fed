import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { LatestRow } from '../../lib/latest-table.ts';
import { isSymbol, SYMBOL_PATTERN } from '../../schemas/pill.ts';
import { formatCursor } from '../../schemas/position.ts';
import { refuse } from '../http/refuse.ts';
import { metered } from './access-rule.ts';
import { endpoint } from './endpoint.ts';
import { matchesEtag, pillsEtag } from './etag.ts';
import { SYMBOLS_MAX } from './limits.ts';
import { type LatestQuery, parseLatestQuery, queryOf } from './parameters.ts';
import { type PillBody, pillBody } from './pill-body.ts';
import { PILL_EXAMPLE, PillSchema, POSITION_EXAMPLE, PositionSchema } from './pill-schemas.ts';
import type { LatestView } from './view.ts';

const Query = Type.Object(
  {
    symbol: Type.Optional(Type.String({ pattern: SYMBOL_PATTERN, description: 'Of this symbol' })),
    symbols: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^[^,]*(,[^,]*){0,${SYMBOLS_MAX - 1}}$`,
        description: `Of these symbols, by commas, at most ${SYMBOLS_MAX}; not with symbol`,
      }),
    ),
    at_least: Type.Optional(
      Type.String({ description: 'Wait up to 1 s until the view has this position' }),
    ),
  },
  { additionalProperties: false },
);

const OneSchema = Type.Object({ data: PillSchema, position: PositionSchema });
const ManySchema = Type.Object({
  data: Type.Record(Type.String(), PillSchema),
  errors: Type.Record(Type.String(), Type.Object({ code: Type.String(), detail: Type.String() })),
  position: PositionSchema,
});

/** `GET /api/pills/latest`: the newest pill of all, of one symbol, or of many. */
export function latestEndpoint(view: LatestView, epoch: string) {
  return endpoint({
    method: 'GET',
    url: '/api/pills/latest',
    tag: 'pills',
    summary: 'The newest pill of all, of one symbol, or of many',
    description:
      'Without a parameter the newest pill of all. With `symbols` every symbol is in `data` or in ' +
      '`errors`. One request is one call, however many symbols it names.',
    access: metered('latest'),
    query: Query,
    checksQuery: true,
    answers: {
      200: {
        description: 'The pill, or the pills by symbol.',
        schema: Type.Union([OneSchema, ManySchema]),
        example: { data: PILL_EXAMPLE, position: POSITION_EXAMPLE },
      },
      304: { description: 'The pills are those of If-None-Match.' },
    },
    problems: ['no_pill', 'position_unknown', 'position_not_reached', 'not_ready'],
    handle: createHandler(view, epoch),
  });
}

function createHandler(view: LatestView, epoch: string) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (!view.isReady()) return refuse(reply, 'not_ready', { retry_after_s: 1 });
    const parsed = parseLatestQuery(queryOf(request));
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const { ask, atLeast } = parsed.value;
    if (atLeast !== undefined) {
      const reached = await view.reach(atLeast);
      if (reached === 'unknown') return refuse(reply, 'position_unknown');
      if (reached === 'overloaded') return refuse(reply, 'overloaded', { retry_after_s: 1 });
      if (reached === 'timeout') {
        const position = view.position();
        return refuse(reply, 'position_not_reached', { position, retry_after_s: 1 });
      }
    }
    return answer(request, reply, ask, view, epoch);
  };
}

function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  ask: LatestQuery['ask'],
  view: LatestView,
  epoch: string,
): FastifyReply {
  const position = view.position();
  if (ask.kind === 'many') {
    const { rows, errors } = collect(ask.symbols, view);
    const data: Record<string, PillBody> = {};
    for (const row of rows) data[row.pill.symbol] = pillBody(row);
    return send(request, reply, rows, epoch, { data, errors, position });
  }
  const row = ask.kind === 'one' ? view.get(ask.symbol) : view.newest();
  if (row === undefined) {
    const what = ask.kind === 'one' ? `No pill of ${ask.symbol}` : 'No pill';
    return refuse(reply, 'no_pill', { detail: `${what} was ever received.`, position });
  }
  return send(request, reply, [row], epoch, { data: pillBody(row), position });
}

function collect(symbols: readonly string[], view: LatestView) {
  const rows: LatestRow[] = [];
  const errors: Record<string, { code: string; detail: string }> = {};
  for (const symbol of symbols) {
    const row = view.get(symbol);
    if (row !== undefined) rows.push(row);
    else if (isSymbol(symbol)) {
      errors[symbol] = { code: 'no_pill', detail: 'No pill of this symbol was ever received.' };
    } else {
      const shown = symbol.slice(0, 64).toWellFormed();
      errors[shown] = { code: 'symbol_malformed', detail: 'Not a symbol.' };
    }
  }
  return { rows, errors };
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  rows: readonly LatestRow[],
  epoch: string,
  body: object,
): FastifyReply {
  const cursors = rows.map(({ partition, pill }) => formatCursor(partition, pill.offset));
  const etag = pillsEtag(epoch, cursors, 'errors' in body);
  reply.header('etag', etag).header('cache-control', 'private, no-cache');
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
