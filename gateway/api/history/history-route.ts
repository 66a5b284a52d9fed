import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Pepper } from '../../../domain/access/pepper.ts';
import {
  addToReceipt,
  EMPTY_RECEIPT,
  type Receipt,
  receiptHeader,
  receiptOf,
} from '../../../schemas/receipt.ts';
import { matchesEtag } from '../../http/etag.ts';
import type { Refusal } from '../../http/problems.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import { callerOf } from '../server/caller.ts';
import { CSV_TYPE } from '../server/csv.ts';
import { defineRoute } from '../server/define-route.ts';
import { pillsEtag } from '../server/etag.ts';
import { type FindUnknown, unknownMember } from '../server/known-symbols.ts';
import {
  acceptable,
  chooseFormat,
  FORMATS,
  type Format,
  MEDIA_TYPES,
  WRITTEN_AS,
} from '../server/media-type.ts';
import { nextPage } from '../server/next-page.ts';
import { queryOf } from '../server/parameters.ts';
import { type History, PAGE_UNKNOWN, type Page } from './history.ts';
import { csvOfPills, pillOf, placeOf, receiptPill } from './history-pill.ts';
import { type HistoryQuery, parseHistoryQuery, rangeText } from './history-query.ts';
import { historyRule } from './history-rule.ts';
import { type PageState, readPage, signPage } from './page-token.ts';
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
      'not_acceptable',
      ...(['grant_invalid', 'position_unknown', 'position_ahead', 'history_behind'] as const),
      ...(['history_unavailable', 'history_too_heavy'] as const),
    ],
    handle: createHandler(options),
  });
}

function createHandler(deps: HistoryRouteOptions) {
  const { history, epoch, pepper } = deps;
  const read = async (
    { range, limit, page }: HistoryQuery,
    state: PageState | undefined,
    accountId: string,
  ) => {
    if (page !== undefined && state === undefined) return PAGE_UNKNOWN;
    if (range.kind === 'position') {
      if (state !== undefined && !('at' in state)) return PAGE_UNKNOWN;
      return await history.byPosition({ range, limit, state, accountId });
    }
    if (state !== undefined && !('key' in state)) return PAGE_UNKNOWN;
    return await history.byTime({ range, limit, state, accountId });
  };
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const query = queryOf(request);
    reply.header('vary', 'Accept, X-API-Key');
    const parsed = parseHistoryQuery(query);
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const format = chooseFormat(parsed.value.format, request.headers.accept, FORMATS);
    if (format === undefined) return refuse(reply, 'not_acceptable', acceptable(FORMATS));
    const text = rangeText(query);
    const token = parsed.value.page;
    const state = token === undefined ? undefined : readPage(token, text, pepper);
    const accountId = callerOf(request).account.id;
    const page = await read(parsed.value, state, accountId);
    if (isRefusal(page)) return refuse(reply, ...page);
    const sum = addToReceipt(state?.receipt ?? EMPTY_RECEIPT, page.rows.map(receiptPill));
    const next =
      page.next === undefined
        ? null
        : nextPage(request.url, { page: signPage({ ...page.next, receipt: sum }, text, pepper) });
    const receipt = { ...receiptOf(sum, epoch), complete: next === null };
    return send(deps, request, reply, { page, format, next, receipt, range: parsed.value.range });
  };
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    try {
      return await answer(request, reply);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return refuse(reply, ...queryProblem(error, PROBLEMS));
    }
  };
}

interface Answer {
  readonly page: Page;
  readonly format: Format;
  /** Address of the next page. */
  readonly next: string | null;
  readonly receipt: Receipt & { readonly complete: boolean };
  readonly range: HistoryQuery['range'];
}

async function send(
  { history, epoch, findUnknown }: HistoryRouteOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  { page, format, next, receipt, range }: Answer,
): Promise<FastifyReply> {
  const { rows, position, asOf, isFinal } = page;
  const places = rows.map((row) => placeOf(row, epoch));
  const etag = pillsEtag(epoch, [...places, String(next === null), format], true);
  reply
    .header('etag', etag)
    // A range with an end in the log never changes; a range that ends now does.
    .header('cache-control', isFinal ? 'private, max-age=3600' : 'private, no-cache')
    .header('pill-receipt', receiptHeader(receipt));
  if (position !== undefined) reply.header('pill-position', position);
  if (next !== null) reply.header('link', `<${next}>; rel="next"`);
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  const pills = () => rows.map((row) => pillOf(row, epoch));
  if (format === 'csv') return reply.type(CSV_TYPE).send(csvOfPills(pills()));
  if (format === 'json') {
    const unknown = unknownMember(findUnknown(symbolsOf(range)));
    const known = position === undefined ? {} : { position };
    const body = { data: pills(), next, ...known, as_of: asOf, receipt, ...unknown };
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  }
  const { id } = callerOf(request).account;
  const bytes = await history.bytes(page, WRITTEN_AS[format], id);
  if (bytes === undefined) return refuse(reply, 'overloaded', { retry_after_s: 1 });
  return reply.type(MEDIA_TYPES[format]).send(bytes);
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
