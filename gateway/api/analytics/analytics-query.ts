import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import type { Calendar } from '../../../domain/market/calendars/calendar.ts';
import type { Turns } from '../../../lib/rate/turns.ts';
import { isSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { matchesEtag } from '../../http/etag.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import { AsOfSchema, asOfBody } from '../clickhouse/table-coverage.ts';
import { metered } from '../server/access-rule.ts';
import { callerOf } from '../server/caller.ts';
import { CSV_TYPE, csvOf, isCsvWanted, type Table } from '../server/csv.ts';
import { defineRoute } from '../server/define-route.ts';
import { hashedEtag } from '../server/etag.ts';
import { exampleOf } from '../server/example.ts';
import { FIGURES_RULE } from '../server/figures.ts';
import { type FindUnknown, UNKNOWN_SYMBOLS, unknownMember } from '../server/known-symbols.ts';
import type { Parsed } from '../server/parameters.ts';
import { choice, strict } from '../server/schemas.ts';
import { type Window, windowBody } from '../server/time-range.ts';
import type { AnalyticsReader, Freshness } from './analytics-reader.ts';
import type { AnswerCache, CachedAnswer } from './answer-cache.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

export interface AnalyticsDeps {
  readonly reader: AnalyticsReader;
  readonly epoch: string;
  /** A pill received this long after its timestamp is backfill, µs. */
  readonly backfillAgeUs: number;
  /** The largest confidence that ingest accepts. */
  readonly confidenceMax: number;
  readonly findUnknown: FindUnknown;
  readonly turns: Turns;
  readonly nowMicros: () => Micros;
  /** The calendar of a symbol; `ALWAYS`: its market never closes; undefined: none is known. */
  readonly calendarOf: (symbol: string) => Calendar | 'ALWAYS' | undefined;
}

/** A narrower request, suggested if one exceeds the bounds. */
interface Narrower {
  /** A request that may fit, as a sentence. */
  readonly hint: string;
  /** Parameters to change, if there are any. */
  readonly try?: Readonly<Record<string, string>>;
}

/** One analytics endpoint. `R` is its parsed request. */
export interface AnalyticsQuery<Q extends TProperties, R extends { readonly window: Window }> {
  /** The path after `/api/analytics/`. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: Q;
  /** With examples. */
  readonly answer: TProperties;
  /** The first lines of the table; by default those of the list in the answer. */
  readonly csvExample?: string;
  parse(query: Static<TObject<Q>>, now: Micros): Parsed<R>;
  /** Computes the JSON body, without `as_of`, and the same figures as a table. @throws QueryError */
  run(request: R, freshness: Freshness): Promise<{ readonly body: object; readonly table: Table }>;
  narrower(request: R): Narrower;
}

const FORMAT = choice(['json', 'csv'], 'Format of the answer; `json` by default');

/** Makes the endpoint of an analytics query. */
export function queryEndpoint<Q extends TProperties, R extends { readonly window: Window }>(
  analytics: AnalyticsQuery<Q, R>,
  { reader, epoch, backfillAgeUs, findUnknown, nowMicros }: AnalyticsDeps,
  answers: AnswerCache,
) {
  const compute = async (request: R, symbols: readonly string[]) => {
    const freshness = await reader.freshness();
    const { body: figures, table } = await analytics.run(request, freshness);
    const unknown = findUnknown(symbols);
    const body = { ...figures, ...unknownMember(unknown) };
    const etag = hashedEtag(JSON.stringify(body));
    const { coverage, isWholeLog, completeUntil } = freshness;
    const as_of = asOfBody(epoch, coverage, isWholeLog, nowMicros());
    const json = Buffer.from(JSON.stringify({ ...body, as_of }));
    const isPast = request.window.until <= completeUntil - backfillAgeUs;
    const isSettled = isPast && unknown.length === 0; // a symbol may become known
    const { cacheMs, cacheSettledMs } = ANALYTICS_LIMITS;
    return { answer: { json, etag, table }, ttlMs: isSettled ? cacheSettledMs : cacheMs };
  };
  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const query = request.query as Static<TObject<Q>> & { readonly format?: 'json' | 'csv' };
    const parsed = analytics.parse(query, nowMicros());
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const { format, ...rest } = query;
    const key = `${analytics.name}?${JSON.stringify(Object.entries(rest).sort())}`;
    try {
      const { id } = callerOf(request).account;
      const answer = await answers(key, id, () => compute(parsed.value, symbolsOf(rest)));
      if (answer === undefined) return refuse(reply, 'overloaded', { retry_after_s: 1 });
      return send(request, reply, answer, isCsvWanted(format, request.headers.accept));
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      // The exceeded bound, and a request that may fit.
      const { hint, try: narrower } = analytics.narrower(parsed.value);
      const members = { detail: `${error.detail ?? OVER_BOUNDS} ${hint}`, try: narrower };
      const heavy = ['query_too_large', members] as const;
      return refuse(reply, ...queryProblem(error, { heavy, unavailable: 'analytics_unavailable' }));
    }
  };
  const schema = Type.Object({ ...analytics.answer, as_of: AsOfSchema, ...UNKNOWN_SYMBOLS });
  const { csvExample = csvOfList(exampleOf(schema)) } = analytics;
  return defineRoute({
    method: 'GET',
    url: `/api/analytics/${analytics.name}`,
    tag: 'analytics',
    summary: analytics.summary,
    description: `${analytics.description} ${FIGURES_RULE}`,
    access: metered('analytics'),
    query: strict({ ...analytics.parameters, format: FORMAT }),
    answers: {
      200: {
        description: 'The figures; as a table with `format=csv` or `Accept: text/csv`.',
        schema,
        others: { 'text/csv': { schema: Type.String(), example: csvExample } },
      },
      304: { description: 'The figures still match If-None-Match.' },
    },
    problems: ['query_too_large', 'analytics_unavailable'],
    handle,
  });
}

/** The symbols that a query names. */
function symbolsOf(query: { readonly symbol?: unknown; readonly symbols?: unknown }): string[] {
  const named = [query.symbol, query.symbols].filter((one) => typeof one === 'string');
  return named.flatMap((list) => list.split(',')).filter(isSymbol);
}

/** The list in an answer, as a table. */
function csvOfList(answer: object): string {
  const rows = Object.values(answer).find(Array.isArray) ?? [];
  return csvOf({ columns: Object.keys(rows[0] ?? {}), rows });
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { json, etag, table }: CachedAnswer,
  isCsv: boolean,
): FastifyReply {
  const tag = isCsv ? etag.replace('"', '"c') : etag;
  reply
    .header('etag', tag)
    .header('vary', 'Accept, X-API-Key')
    .header('cache-control', 'private, no-cache');
  if (matchesEtag(request.headers['if-none-match'], tag)) return reply.code(304).send();
  if (isCsv) return reply.type(CSV_TYPE).send(csvOf(table));
  return reply.type('application/json; charset=utf-8').send(json);
}

const OVER_BOUNDS = `The answer would take more than ${ANALYTICS_LIMITS.statementS} s, ${ANALYTICS_LIMITS.statementRowsMax} pills read or 1 GiB of memory.`;

/** For a request about a time window: the later half of the window. */
export function laterHalf({ since, until }: Window): Narrower {
  const half = { since: Math.round((since + until) / 2), until };
  return { hint: 'Half of the time may fit.', try: windowBody(half) };
}
