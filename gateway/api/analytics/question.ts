import { createHash } from 'node:crypto';
import { stringify } from 'csv-stringify/sync';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox';
import type { Micros } from '../../../schemas/timestamp.ts';
import { refuse } from '../../http/refuse.ts';
import { metered } from '../access-rule.ts';
import { NoAnswer } from '../clickhouse/select.ts';
import { toldAsOf } from '../clickhouse/stored.ts';
import { endpoint } from '../endpoint.ts';
import { matchesEtag } from '../etag.ts';
import type { Parsed } from '../parameters.ts';
import type { Turnstile } from '../turnstile.ts';
import type { AsOf, Desk } from './desk.ts';
import { ANALYTICS_LIMITS } from './limits.ts';
import { toldWindow, type Window } from './window.ts';

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

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, unknown>>[];
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
  find(asked: A, asOf: AsOf): Promise<Found>;
}

const FORMAT = Type.Optional(
  Type.Enum(['json', 'csv'], { description: 'How the answer is written; `json` by default' }),
);

const AsOfSchema = Type.Object({
  position: Type.String({ description: 'Every pill up to here is in the answer' }),
  received_at: Type.Union([Type.String(), Type.Null()], {
    description: 'Receive time of the newest pill in it',
  }),
  lag_ms: Type.Union([Type.Number(), Type.Null()], { description: 'How long ago that was' }),
});

/** An answer as it is kept: written once, sent to all who ask within a moment. */
interface Kept {
  readonly json: Buffer;
  readonly etag: string;
  readonly table: Table;
}

/** @returns undefined when there was no turn for it */
type Answerer = () => Promise<{ readonly kept: Kept; readonly keepMs: number } | undefined>;

/** Answers that are kept for a moment; of equal questions asked together one is worked on. */
export function createKeeper() {
  const cache = new LRUCache<string, Kept, Answerer>({
    maxSize: ANALYTICS_LIMITS.keptBytesMax,
    // The table is made of the same values as the text.
    sizeCalculation: ({ json }) => json.length * 2,
    fetchMethod: async (_key, _stale, { options, context: answer }) => {
      const answered = await answer();
      if (answered !== undefined) options.ttl = answered.keepMs;
      return answered?.kept;
    },
  });
  return (key: string, answer: Answerer) => cache.fetch(key, { context: answer });
}

/** Makes the endpoint of a question. */
export function questionEndpoint<Q extends TProperties, A extends { readonly window: Window }>(
  question: Question<Q, A>,
  { desk, epoch, backfillAgeUs, turnstile, nowMicros }: Sources,
  keep: ReturnType<typeof createKeeper>,
) {
  const answer = async (asked: A) => {
    const asOf = await desk.asOf();
    const { body, table } = await question.find(asked, asOf);
    const etag = `W/"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 22)}"`;
    const told = { ...body, as_of: toldAsOf(epoch, asOf.stored, asOf.hasAll, nowMicros()) };
    const isSettled = asked.window.until <= asOf.completeUntil - backfillAgeUs;
    return {
      kept: { json: Buffer.from(JSON.stringify(told)), etag, table },
      keepMs: isSettled ? ANALYTICS_LIMITS.keptSettledMs : ANALYTICS_LIMITS.keptMs,
    };
  };
  const inTurn = async <T>(request: FastifyRequest, work: () => Promise<T>) => {
    const leave = await turnstile.enter(request.caller!.account.id);
    return leave === undefined ? undefined : work().finally(leave);
  };
  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const query = request.query as Static<TObject<Q>> & { readonly format?: 'json' | 'csv' };
    const parsed = question.parse(query, nowMicros());
    if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
    const { format = 'json', ...rest } = query;
    const key = `${question.name}?${JSON.stringify(Object.entries(rest).sort())}`;
    try {
      const kept = await keep(key, () => inTurn(request, () => answer(parsed.value)));
      if (kept === undefined) return refuse(reply, 'overloaded', { retry_after_s: 1 });
      return send(request, reply, kept, format);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return refuseQuestion(reply, error, parsed.value.window);
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
        description: 'The figures; with `format=csv` their table as `text/csv`.',
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
  format: 'json' | 'csv',
): FastifyReply {
  const tag = format === 'json' ? etag : etag.replace('"', '"c');
  reply.header('etag', tag).header('cache-control', 'private, no-cache');
  if (matchesEtag(request.headers['if-none-match'], tag)) return reply.code(304).send();
  if (format === 'json') return reply.type('application/json; charset=utf-8').send(json);
  const text = stringify([...table.rows], { header: true, columns: [...table.columns] });
  return reply.type('text/csv; charset=utf-8; header=present').send(text);
}

function refuseQuestion(reply: FastifyReply, { why }: NoAnswer, window: Window) {
  if (why !== 'heavy') return refuse(reply, 'analytics_unavailable', { retry_after_s: 2 });
  const half = { since: Math.round((window.since + window.until) / 2), until: window.until };
  const { from, to } = toldWindow(half);
  return refuse(reply, 'query_too_large', {
    detail: `The time asked for costs more than ${ANALYTICS_LIMITS.statementS} s, ${ANALYTICS_LIMITS.statementRowsMax} pills read or 1 GiB. Half of it may fit.`,
    try: { from, to },
  });
}

const AS_OF_EXAMPLE = {
  position: 'k7f3:0-95,3-140',
  received_at: '2026-11-20T01:02:07.880000Z',
  lag_ms: 640,
};

/** A number, or null where there is none. */
export const NumberOrNull: TSchema = Type.Union([Type.Number(), Type.Null()]);
