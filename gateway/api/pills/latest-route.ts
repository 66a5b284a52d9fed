import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { LatestRow } from '../../../domain/order/latest-table.ts';
import { isSymbol } from '../../../schemas/pill.ts';
import { formatCursor, formatPosition } from '../../../schemas/position.ts';
import { PUBLIC_PILL_EXAMPLE, publicPill } from '../../../schemas/public-pill.ts';
import { matchesEtag } from '../../http/etag.ts';
import { refuse } from '../../http/refuse.ts';
import { endBefore, type ReadLogEnd } from '../clickhouse/log-end.ts';
import { SYMBOLS_MAX } from '../limits.ts';
import { metered } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import { pillsEtag } from '../server/etag.ts';
import { createFindUnknown, noPillText } from '../server/known-symbols.ts';
import { optionalText, strict, symbolOf } from '../server/schemas.ts';
import { symbolErrors, symbolList } from '../server/symbol-list.ts';
import { type LatestQuery, parseLatestQuery } from './latest-query.ts';
import type { LatestView } from './latest-view.ts';
import { PillSchema, POSITION_EXAMPLE, PositionSchema } from './pill-schemas.ts';

const Query = strict({
  symbol: Type.Optional(symbolOf('One symbol, e.g. 7203.T')),
  symbols: symbolList(SYMBOLS_MAX, 'excludes `symbol`'),
  at_least: optionalText('Wait up to 1 s for the view to reach this position'),
});

const OneSchema = Type.Object({ data: PillSchema, position: PositionSchema });
const ManySchema = Type.Object({
  data: Type.Record(Type.String(), PillSchema),
  errors: Type.Record(Type.String(), Type.Object({ code: Type.String(), detail: Type.String() })),
  position: PositionSchema,
});

/** `GET /api/pills/latest`: the newest pill of all, of one symbol, or of many. */
export function latestRoute(view: LatestView, logEnd: ReadLogEnd, epoch: string) {
  return defineRoute({
    method: 'GET',
    url: '/api/pills/latest',
    tag: 'pills',
    summary: 'The newest pill of all, of one symbol, or of many',
    description:
      'Without parameters, the newest pill of all. With `symbols`, every symbol is in `data` or ' +
      'in `errors`. A request counts as one call, however many symbols it names.',
    access: metered('latest'),
    query: Query,
    answers: {
      200: {
        description: 'The pill, or the pills by symbol.',
        schema: Type.Union([OneSchema, ManySchema]),
        example: { data: PUBLIC_PILL_EXAMPLE, position: POSITION_EXAMPLE },
      },
      304: { description: 'The pills have not changed since If-None-Match.' },
    },
    problems: [
      ...(['no_pill', 'position_unknown', 'position_ahead'] as const),
      ...(['position_not_reached', 'not_ready'] as const),
    ],
    handle: createHandler(view, logEnd, epoch),
  });
}

function createHandler(view: LatestView, logEnd: ReadLogEnd, epoch: string) {
  const findUnknown = createFindUnknown(view);
  const send = (
    request: FastifyRequest,
    reply: FastifyReply,
    rows: readonly LatestRow[],
    body: object,
  ) => {
    const cursors = rows.map(({ partition, pill }) => formatCursor(partition, pill.offset));
    const etag = pillsEtag(epoch, cursors, 'errors' in body);
    reply.header('etag', etag).header('cache-control', 'private, no-cache');
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  };
  const answer = (
    request: FastifyRequest,
    reply: FastifyReply,
    selection: LatestQuery['selection'],
  ) => {
    const position = view.position();
    if (selection.kind === 'many') {
      const rows = selection.symbols.flatMap((symbol) => view.get(symbol) ?? []);
      const data = Object.fromEntries(rows.map((row) => [row.pill.symbol, pillBody(row)]));
      const missing = selection.symbols.filter((symbol) => view.get(symbol) === undefined);
      const unknown = findUnknown(missing.filter(isSymbol)).map((one) => {
        return [one.symbol, { code: 'no_pill', detail: noPillText(one) }] as const;
      });
      const errors = { ...Object.fromEntries(unknown), ...symbolErrors(missing) };
      return send(request, reply, rows, { data, errors, position });
    }
    const row = selection.kind === 'one' ? view.get(selection.symbol) : view.newest();
    if (row !== undefined) return send(request, reply, [row], { data: pillBody(row), position });
    const [unknown] = selection.kind === 'one' ? findUnknown([selection.symbol]) : [];
    const detail = unknown === undefined ? 'No pill was ever received.' : noPillText(unknown);
    return refuse(reply, 'no_pill', { detail, position });
  };

  return async (
    request: FastifyRequest & { readonly query: Static<typeof Query> },
    reply: FastifyReply,
  ) => {
    if (!view.isReady()) return refuse(reply, 'not_ready', { retry_after_s: 1 });
    const parsed = parseLatestQuery(request.query);
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const { selection, atLeast } = parsed.value;
    if (atLeast !== undefined) {
      const reached = await view.reach(atLeast);
      if (reached === 'unknown') return refuse(reply, 'position_unknown');
      if (reached === 'overloaded') return refuse(reply, 'overloaded', { retry_after_s: 1 });
      if (reached === 'timeout') {
        const end = await endBefore(atLeast.offsets, logEnd);
        if (end !== undefined) {
          return refuse(reply, 'position_ahead', { position: formatPosition(epoch, end) });
        }
        const position = view.position();
        return refuse(reply, 'position_not_reached', { position, retry_after_s: 1 });
      }
    }
    return answer(request, reply, selection);
  };
}

const pillBody = ({ partition, pill }: LatestRow) =>
  publicPill({ ...pill, partition }, { prev: pill.prev_offset });
