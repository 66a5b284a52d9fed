import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox';
import type { Micros } from '../../../schemas/timestamp.ts';
import { refuse } from '../../http/refuse.ts';
import { metered } from '../access-rule.ts';
import { callerOf } from '../caller.ts';
import { refusalOf } from '../clickhouse/refusal-of.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { AS_OF_EXAMPLE, AsOfSchema, toldAsOf } from '../clickhouse/stored.ts';
import { CSV_TYPE, csvOf, isCsvWanted, type Table } from '../csv.ts';
import { endpoint } from '../endpoint.ts';
import { hashedEtag, matchesEtag } from '../etag.ts';
import type { Parsed } from '../parameters.ts';
import { toldWindow, type Window } from '../time-range.ts';
import type { Turnstile } from '../turnstile.ts';
import type { Desk, Extent } from './desk.ts';
import type { Keep, Kept } from './keeper.ts';
import { ANALYTICS_LIMITS } from './limits.ts';

/** What a question is answered from. */
export interface Sources {
  readonly desk: Desk;
  readonly epoch: string;
  /** What was received so long after its timestamp is backfill, µs. */
  readonly backfillAgeUs: number;
  readonly turnstile: Turnstile;
  readonly nowMicros: () => Micros;
}

/** One answer, before it is written as JSON or CSV. */
export interface Found {
  /** Members of the JSON body, beside `as_of`. */
  readonly body: object;
  /** The same as a table. */
  readonly table: Table;
}

/** A question that asks for less, where one went over the bounds. */
export interface Less {
  /** What may fit, as a sentence. */
  readonly hint: string;
  /** Parameters to set, where there are any. */
  readonly try?: Readonly<Record<string, string>>;
}

/** One endpoint of the analytics. `A` is what its query comes to. */
export interface Question<Q extends TProperties, A extends { readonly window: Window }> {
  /** After `/api/analytics/`. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly query: Q;
  readonly answer: TProperties;
  readonly example: object;
  /** The first lines of the table. */
  readonly csvExample: string;
  parse(query: Static<TObject<Q>>, now: Micros): Parsed<A>;
  /** @throws NoAnswer */
  find(asked: A, extent: Extent): Promise<Found>;
  less(asked: A): Less;
}

const FORMAT = Type.Optional(
  Type.Enum(['json', 'csv'], { description: 'How the answer is written; `json` by default' }),
);

/** Makes the endpoint of a question. */
export function questionEndpoint<Q extends TProperties, A extends { readonly window: Window }>(
  question: Question<Q, A>,
  { desk, epoch, backfillAgeUs, nowMicros }: Sources,
  keep: Keep,
) {
  const answer = async (asked: A) => {
    const extent = await desk.extent();
    const { body, table } = await question.find(asked, extent);
    const etag = hashedEtag(JSON.stringify(body));
    const told = { ...body, as_of: toldAsOf(epoch, extent.stored, extent.hasAll, nowMicros()) };
    const isSettled = asked.window.until <= extent.completeUntil - backfillAgeUs;
    return {
      kept: { json: Buffer.from(JSON.stringify(told)), etag, table },
      keepMs: isSettled ? ANALYTICS_LIMITS.keptSettledMs : ANALYTICS_LIMITS.keptMs,
    };
  };
  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const query = request.query as Static<TObject<Q>> & { readonly format?: 'json' | 'csv' };
    const parsed = question.parse(query, nowMicros());
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const { format, ...rest } = query;
    const key = `${question.name}?${JSON.stringify(Object.entries(rest).sort())}`;
    try {
      const kept = await keep(key, callerOf(request).account.id, () => answer(parsed.value));
      if (kept === undefined) return refuse(reply, 'overloaded', { retry_after_s: 1 });
      return send(request, reply, kept, isCsvWanted(format, request.headers.accept));
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      const heavy = ['query_too_large', tooLarge(error, question.less(parsed.value))] as const;
      return refuse(reply, ...refusalOf(error, { heavy, away: 'analytics_unavailable' }));
    }
  };
  return endpoint({
    method: 'GET',
    url: `/api/analytics/${question.name}`,
    tag: 'analytics',
    summary: question.summary,
    description: question.description,
    access: metered('analytics'),
    query: Type.Object({ ...question.query, format: FORMAT }, { additionalProperties: false }),
    answers: {
      200: {
        description: 'The figures; with `format=csv`, or by Accept, their table.',
        schema: Type.Object({ ...question.answer, as_of: AsOfSchema }),
        example: { ...question.example, as_of: AS_OF_EXAMPLE },
        others: { 'text/csv': { schema: Type.String(), example: question.csvExample } },
      },
      304: { description: 'The figures are those of If-None-Match.' },
    },
    problems: ['query_too_large', 'analytics_unavailable'],
    handle,
  });
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { json, etag, table }: Kept,
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

/** What went over the bounds, and what may fit. */
function tooLarge({ detail = OVER_BOUNDS }: NoAnswer, less: Less) {
  return { detail: `${detail} ${less.hint}`, try: less.try };
}

const OVER_BOUNDS = `Answering costs more than ${ANALYTICS_LIMITS.statementS} s, ${ANALYTICS_LIMITS.statementRowsMax} pills read or 1 GiB.`;

/** Of a question about a time: the later half of it. */
export function lessTime({ since, until }: Window): Less {
  const half = { since: Math.round((since + until) / 2), until };
  return { hint: 'Half of the time may fit.', try: toldWindow(half) };
}

/** A number, or null where there is none. */
export const NumberOrNull: TSchema = Type.Union([Type.Number(), Type.Null()]);
