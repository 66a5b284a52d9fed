import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import type { Calendar } from '../../../domain/market/calendars/calendar.ts';
import type { Turns } from '../../../lib/rate/turns.ts';
import { isSymbol } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { matchesEtag } from '../../http/etag.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import type { Statement } from '../clickhouse/read-bytes.ts';
import { AsOfSchema, asOfBody } from '../clickhouse/table-coverage.ts';
import { metered } from '../server/access-rule.ts';
import { BINARY_ANSWERS } from '../server/binary-answers.ts';
import { callerOf } from '../server/caller.ts';
import { CSV_TYPE, csvOf, type Table } from '../server/csv.ts';
import { defineRoute } from '../server/define-route.ts';
import { hashedEtag } from '../server/etag.ts';
import { exampleOf } from '../server/example.ts';
import { FIGURES_RULE } from '../server/figures.ts';
import { type FindUnknown, UNKNOWN_SYMBOLS, unknownMember } from '../server/known-symbols.ts';
import {
  acceptable,
  type BinaryFormat,
  chooseFormat,
  FORMATS,
  type Format,
  MEDIA_TYPES,
  WRITTEN_AS,
} from '../server/media-type.ts';
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
  /** Selects the rows of the table with their types; absent: there is neither Arrow nor Parquet. */
  statement?(request: R, freshness: Freshness): Statement;
  narrower(request: R): Narrower;
}

const TEXT_FORMATS = ['json', 'csv'] as const satisfies readonly Format[];

/** Makes the endpoint of an analytics query. */
export function queryEndpoint<Q extends TProperties, R extends { readonly window: Window }>(
  analytics: AnalyticsQuery<Q, R>,
  deps: AnalyticsDeps,
  answers: AnswerCache,
) {
  const { nowMicros } = deps;
  const formats: readonly Format[] = analytics.statement === undefined ? TEXT_FORMATS : FORMATS;
  const compute = createCompute(analytics, deps);
  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const query = request.query as Static<TObject<Q>> & { readonly format?: Format };
    reply.header('vary', 'Accept, X-API-Key');
    const parsed = analytics.parse(query, nowMicros());
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const { format: wanted, ...rest } = query;
    const format = chooseFormat(wanted, request.headers.accept, formats);
    if (format === undefined) return refuse(reply, 'not_acceptable', acceptable(formats));
    const written = format in WRITTEN_AS ? (format as BinaryFormat) : undefined;
    const key = `${analytics.name}?${JSON.stringify([written, ...Object.entries(rest).sort()])}`;
    try {
      const { id } = callerOf(request).account;
      const run = () => compute(parsed.value, symbolsOf(rest), written);
      const answer = await answers(key, id, run);
      if (answer === undefined) return refuse(reply, 'overloaded', { retry_after_s: 1 });
      return send(request, reply, answer, format);
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
    query: strict({
      ...analytics.parameters,
      format: choice(formats, 'Format of the answer; takes precedence over Accept'),
    }),
    answers: {
      200: {
        description:
          'The figures; as a table with `format` or `Accept`. The header `Pill-Position` has the ' +
          'position of `as_of`, `Link` (`rel="next"`) the next page.',
        schema,
        others: {
          'text/csv': { schema: Type.String(), example: csvExample },
          ...(analytics.statement && BINARY_ANSWERS),
        },
      },
      304: { description: 'The figures still match If-None-Match.' },
    },
    problems: ['not_acceptable', 'query_too_large', 'analytics_unavailable'],
    handle,
  });
}

/** Computes answers, and how long they may be cached. */
function createCompute<Q extends TProperties, R extends { readonly window: Window }>(
  analytics: AnalyticsQuery<Q, R>,
  { reader, epoch, backfillAgeUs, findUnknown, nowMicros }: AnalyticsDeps,
) {
  return async (request: R, symbols: readonly string[], written?: BinaryFormat) => {
    const freshness = await reader.freshness();
    const { body: figures, table } = await analytics.run(request, freshness);
    const unknown = findUnknown(symbols);
    const body = { ...figures, ...unknownMember(unknown) };
    const etag = hashedEtag(JSON.stringify(body));
    const { coverage, isWholeLog, completeUntil } = freshness;
    const as_of = asOfBody(epoch, coverage, isWholeLog, nowMicros());
    const { next = null } = body as { readonly next?: string | null };
    const bytes =
      written === undefined
        ? Buffer.from(JSON.stringify({ ...body, as_of }))
        : await reader.readBytes(analytics.statement!(request, freshness), WRITTEN_AS[written]);
    const answer = { body: bytes, etag, table, next, position: as_of.position };
    const isPast = request.window.until <= completeUntil - backfillAgeUs;
    const isSettled = isPast && unknown.length === 0; // a symbol may become known
    const { cacheMs, cacheSettledMs } = ANALYTICS_LIMITS;
    return { answer, ttlMs: isSettled ? cacheSettledMs : cacheMs };
  };
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
  { body, etag, table, next, position }: CachedAnswer,
  format: Format,
): FastifyReply {
  const tag = format === 'json' ? etag : etag.replace('"', `"${format[0]}`);
  reply
    .header('etag', tag)
    .header('cache-control', 'private, no-cache')
    .header('pill-position', position);
  if (next !== null) reply.header('link', `<${next}>; rel="next"`);
  if (matchesEtag(request.headers['if-none-match'], tag)) return reply.code(304).send();
  if (format === 'csv') return reply.type(CSV_TYPE).send(csvOf(table));
  const type = format === 'json' ? 'application/json; charset=utf-8' : MEDIA_TYPES[format];
  return reply.type(type).send(body);
}

const OVER_BOUNDS = `The answer would take more than ${ANALYTICS_LIMITS.statementS} s, ${ANALYTICS_LIMITS.statementRowsMax} pills read or 1 GiB of memory.`;

/** For a request about a time window: the later half of the window. */
export function laterHalf({ since, until }: Window): Narrower {
  const half = { since: Math.round((since + until) / 2), until };
  return { hint: 'Half of the time may fit.', try: windowBody(half) };
}
