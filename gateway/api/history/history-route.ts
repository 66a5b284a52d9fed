import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Pepper } from '../../../domain/access/pepper.ts';
import { matchesEtag } from '../../http/etag.ts';
import type { Refusal } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import { callerOf } from '../server/caller.ts';
import { CSV_TYPE, isCsvWanted } from '../server/csv.ts';
import { defineRoute } from '../server/define-route.ts';
import { pillsEtag } from '../server/etag.ts';
import { type FindUnknown, unknownMember } from '../server/known-symbols.ts';
import { nextPage } from '../server/next-page.ts';
import { queryOf } from '../server/parameters.ts';
import { type History, PAGE_UNKNOWN, type Page } from './history.ts';
import { csvOfPills } from './history-pill.ts';
import { type HistoryQuery, parseHistoryQuery, rangeText } from './history-query.ts';
import { historyRule } from './history-rule.ts';
import { readPage, signPage } from './page-token.ts';
import { HISTORY_ANSWER, HISTORY_DESCRIPTION, HistoryQuerySchema } from './schemas.ts';

interface HistoryRouteOptions {
  readonly history: History;
  readonly epoch: string;
  readonly pepper: Pepper;
  readonly findUnknown: FindUnknown;
}

/** `GET /api/pills`: published pills by time or by position; also fills the gaps of streams. */
export function historyEndpoint(options: HistoryRouteOptions) {
  return defineRoute({
    method: 'GET',
    url: '/api/pills',
    tag: 'pills',
    summary: 'History: pills of a time range, or of a range of the log, in pages',
    description: HISTORY_DESCRIPTION,
    access: historyRule(options.pepper),
    query: HistoryQuerySchema,
    answers: {
      200: HISTORY_ANSWER,
      304: { description: 'The page still matches If-None-Match.' },
    },
    problems: [
      ...(['grant_invalid', 'position_unknown', 'position_ahead', 'history_behind'] as const),
      ...(['history_unavailable', 'history_too_heavy'] as const),
    ],
    handle: createHandler(options),
  });
}

function createHandler({ history, epoch, pepper, findUnknown }: HistoryRouteOptions) {
  const read = async ({ range, limit, page }: HistoryQuery, text: string, accountId: string) => {
    const state = page === undefined ? undefined : readPage(page, text, pepper);
    if (page !== undefined && state === undefined) return PAGE_UNKNOWN;
    try {
      if (range.kind === 'position') {
        if (state !== undefined && !('at' in state)) return PAGE_UNKNOWN;
        return await history.byPosition({ range, limit, state, accountId });
      }
      if (state !== undefined && !('key' in state)) return PAGE_UNKNOWN;
      return await history.byTime({ range, limit, state, accountId });
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return queryProblem(error, PROBLEMS);
    }
  };

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = queryOf(request);
    const parsed = parseHistoryQuery(query);
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const text = rangeText(query);
    const page = await read(parsed.value, text, callerOf(request).account.id);
    if (isRefusal(page)) return refuse(reply, ...page);
    const next =
      page.next === undefined
        ? null
        : nextPage(request.url, { page: signPage(page.next, text, pepper) });
    const isCsv = isCsvWanted(parsed.value.format, request.headers.accept);
    const { data, position, asOf, isFinal } = page;
    const cursors = data.map((pill) => `${pill.epoch ?? ''}${pill.cursor}`);
    const etag = pillsEtag(epoch, [...cursors, String(next === null), String(isCsv)], true);
    reply
      .header('etag', etag)
      .header('vary', 'Accept, X-API-Key')
      // A range with an end in the log never changes; a range that ends now does.
      .header('cache-control', isFinal ? 'private, max-age=3600' : 'private, no-cache');
    if (position !== undefined) reply.header('pill-position', position);
    if (next !== null) reply.header('link', `<${next}>; rel="next"`);
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    if (isCsv) return reply.type(CSV_TYPE).send(csvOfPills(data));
    const unknown = unknownMember(findUnknown(symbolsOf(parsed.value.range)));
    const known = position === undefined ? {} : { position };
    const body = { data, next, ...known, as_of: asOf, ...unknown };
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  };
}

const PROBLEMS = {
  heavy: ['history_too_heavy', {}],
  unavailable: 'history_unavailable',
} as const;

/** The symbols that a range names. */
function symbolsOf(range: HistoryQuery['range']): readonly string[] {
  if (range.kind === 'time') return range.symbols;
  return range.symbol === undefined ? [] : [range.symbol];
}

function isRefusal(page: Page | Refusal): page is Refusal {
  return Array.isArray(page);
}
