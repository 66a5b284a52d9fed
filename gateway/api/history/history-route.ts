import type { FastifyReply, FastifyRequest } from 'fastify';
import { refuse } from '../../http/refuse.ts';
import { callerOf } from '../caller.ts';
import { refusalOf } from '../clickhouse/refusal-of.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { CSV_TYPE, isCsvWanted } from '../csv.ts';
import { endpoint } from '../endpoint.ts';
import { matchesEtag, pillsEtag } from '../etag.ts';
import { queryOf } from '../parameters.ts';
import { historyRule } from './grant.ts';
import { type History, PAGE_UNKNOWN, type Page, type Refusal } from './history.ts';
import { readPage, signPage } from './page-token.ts';
import { type HistoryQuery, parseHistoryQuery, questionText } from './question.ts';
import { csvOfPills } from './rows.ts';
import { HISTORY_ANSWER, HISTORY_DESCRIPTION, HistoryQuerySchema } from './schemas.ts';

export interface HistoryRouteOptions {
  readonly history: History;
  readonly epoch: string;
  readonly pepper: Buffer;
}

/** `GET /api/pills`: what was published, by time or by position; fills the gaps of streams. */
export function historyEndpoint(options: HistoryRouteOptions) {
  return endpoint({
    method: 'GET',
    url: '/api/pills',
    tag: 'pills',
    summary: 'History: pills of a range of time, or of the log, in pages',
    description: HISTORY_DESCRIPTION,
    access: historyRule(options.pepper),
    query: HistoryQuerySchema,
    checksQuery: true,
    answers: {
      200: HISTORY_ANSWER,
      304: { description: 'The page is that of If-None-Match.' },
    },
    problems: [
      ...(['grant_invalid', 'position_unknown', 'history_behind'] as const),
      ...(['history_unavailable', 'history_too_heavy'] as const),
    ],
    handle: createHandler(options),
  });
}

function createHandler({ history, epoch, pepper }: HistoryRouteOptions) {
  const read = async (
    query: HistoryQuery,
    text: string,
    accountId: string,
  ): Promise<Page | Refusal> => {
    const { question, limit, page } = query;
    const state = page === undefined ? undefined : readPage(page, text, pepper);
    const isOfPlaces = state === undefined || 'at' in state;
    const isOfTimes = state === undefined || 'key' in state;
    if (page !== undefined && state === undefined) return PAGE_UNKNOWN;
    try {
      if (question.kind === 'places') {
        if (!isOfPlaces) return PAGE_UNKNOWN;
        return await history.places({ question, limit, state, accountId });
      }
      if (!isOfTimes) return PAGE_UNKNOWN;
      return await history.times({ question, limit, state, accountId });
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return refusalOf(error, PROBLEMS);
    }
  };

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = queryOf(request);
    const parsed = parseHistoryQuery(query);
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const text = questionText(query);
    const page = await read(parsed.value, text, callerOf(request).account.id);
    if (isRefusal(page)) return refuse(reply, ...page);
    const next = page.next === undefined ? null : pathOf(query, signPage(page.next, text, pepper));
    const isCsv = isCsvWanted(parsed.value.format, request.headers.accept);
    return send(request, reply, page, { next, isCsv, epoch });
  };
}

const PROBLEMS = {
  heavy: ['history_too_heavy', {}],
  away: 'history_unavailable',
} as const;

function isRefusal(page: Page | Refusal): page is Refusal {
  return Array.isArray(page);
}

function pathOf(query: URLSearchParams, page: string): string {
  const next = new URLSearchParams(query);
  next.set('page', page);
  return `/api/pills?${next}`;
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
  { next, isCsv, epoch }: { next: string | null; isCsv: boolean; epoch: string },
): FastifyReply {
  const { data, position, asOf, isFinal } = page;
  const cursors = data.map((pill) => `${pill.epoch ?? ''}${pill.cursor}`);
  const etag = pillsEtag(epoch, [...cursors, String(next === null), String(isCsv)], true);
  reply
    .header('etag', etag)
    .header('vary', 'Accept, X-API-Key')
    // What has an end in the log never changes; what ends now does.
    .header('cache-control', isFinal ? 'private, max-age=3600' : 'private, no-cache');
  if (position !== undefined) reply.header('pill-position', position);
  if (next !== null) reply.header('link', `<${next}>; rel="next"`);
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  if (isCsv) return reply.type(CSV_TYPE).send(csvOfPills(data));
  const body = { data, next, ...(position === undefined ? {} : { position }), as_of: asOf };
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
}
