import type { FastifyReply, RouteOptions } from 'fastify';
import { type TObject, Type } from 'typebox';
import {
  customersDatabaseName,
  openClickHouse,
} from '../../../lib/clickhouse/clickhouse-client.ts';
import { createTurns } from '../../../lib/rate/turns.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import { openSelect, type Select } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import { GENERATOR } from '../server/access-rule.ts';
import { defineRoute, type RouteDefinition } from '../server/define-route.ts';
import { generatorOf } from '../server/generators.ts';
import { nextPage } from '../server/next-page.ts';
import { parameterFault } from '../server/parameters.ts';
import { choice, limitOf, Next, optionalText, strict } from '../server/schemas.ts';
import { parseWindow, windowBody } from '../server/time-range.ts';
import {
  readOutcomes,
  readRefused,
  readRefusedToken,
  refusedToken,
  startOfHour,
} from './outcomes.ts';

/** Bounds of these routes; ClickHouse stops a statement after `statementS`, we after `statementMs`. */
export const GENERATOR_READ_LIMITS = {
  statementS: 5,
  statementMs: 6_000,
  statementRowsMax: 100_000_000,
  statementBytesMax: 1_073_741_824,
  resultRowsMax: 50_000,
  activeMax: 2,
  activeOfAccountMax: 1,
  waitingMax: 32,
  waitingOfAccountMax: 8,
  waitingMs: 2_000,
  summary: { byDefaultS: 86_400, maxS: 7 * 86_400 },
  page: { max: 200, byDefault: 50 },
} as const;

const { page, summary } = GENERATOR_READ_LIMITS;

type Config = Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>;

/** Opens reading the outcomes of pills, which are in the database that analysts may not read. */
export function openOutcomes(config: Config, life: Lifecycle): Select {
  const { statementMs, activeMax, resultRowsMax } = GENERATOR_READ_LIMITS;
  const clickhouse = openClickHouse({
    url: config.clickhouseUrl,
    database: customersDatabaseName(config.namespace),
    requestTimeoutMs: statementMs,
    connectionsMax: 4 * activeMax,
  });
  life.onStop('clickhouse of generators', () => clickhouse.close());
  return openSelect(clickhouse, life.log, {
    name: 'generators',
    bounds: GENERATOR_READ_LIMITS,
    settings: { max_result_rows: resultRowsMax, use_skip_indexes_if_final: 1 },
  });
}

/** What became of the pills of a generator: for its owner, by the credential that sends them. */
export function generatorRoutes(config: Config, select: Select): RouteOptions[] {
  const turns = createTurns(GENERATOR_READ_LIMITS);
  const read = async (source: string, reply: FastifyReply, answer: () => Promise<object>) => {
    const leave = await turns.begin(source);
    if (leave === undefined) return refuse(reply, 'overloaded', { retry_after_s: 1 });
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return refuse(reply, ...queryProblem(error, PROBLEMS));
    } finally {
      leave();
    }
  };
  return [summaryRoute(select, config, read), rejectedRoute(select, read)];
}

const PROBLEMS = {
  heavy: ['query_too_large', { detail: 'Ask for a shorter range.' }],
  unavailable: 'analytics_unavailable',
} as const;

type Read = (
  source: string,
  reply: FastifyReply,
  answer: () => Promise<object>,
) => Promise<unknown>;

const SourceParameter = optionalText(
  'Only this source; without a credential, where ingest is open, all of them',
  { minLength: 1, maxLength: 64 },
);

function generatorRoute<Q extends TObject>(
  of: Pick<RouteDefinition<TObject, Q, TObject>, 'url' | 'summary' | 'answers' | 'handle'> & {
    readonly description: string;
    readonly query: Q;
  },
): RouteOptions {
  return defineRoute<TObject, Q, TObject>({
    ...of,
    method: 'GET',
    tag: 'generator',
    access: GENERATOR,
    problems: ['query_too_large', 'analytics_unavailable'],
    async handle(request, reply) {
      reply.header('cache-control', 'no-store');
      return of.handle(request, reply);
    },
  });
}

const count = (description: string, example = 0) =>
  Type.Integer({ description, examples: [example] });
const text = (description: string, example: string) =>
  Type.String({ description, examples: [example] });
const Channel = Type.Enum(['http', 'log'], {
  description: 'http: refused by ingest; log: rejected by the consumers of the log',
  examples: ['http'],
});
const Source = text('The name of the credential; empty if unknown', 'desk-1');
const Code = text('Code of the problem, or of the rejected record', 'pill_invalid');
const FaultCode = text('Code of the first fault of the pill; empty if none', 'missing_field');

const Hour = strict({
  hour: text('Start of the hour', '2026-11-20T01:00:00.000000Z'),
  source: Source,
  accepted: count('Pills with effect, late ones and backfill included', 3600),
  late: count('Of these, late'),
  backfill: count('Of these, backfill'),
  repeated: count('Repeats of known pills, which have no effect', 2),
  refused: count('Pills that ingest refused; a request whose pills were not read counts as one', 1),
  rejected: count('Records of the log that have no effect'),
  reasons: Type.Array(
    strict({ channel: Channel, code: Code, fault: FaultCode, count: count('Pills', 1) }),
    { description: 'Of refused and rejected, the most frequent first' },
  ),
});

const Time = (what: string) =>
  optionalText(`${what}, ISO 8601 in UTC`, { maxLength: 40, examples: ['2026-11-20T00:00:00Z'] });

function summaryRoute(select: Select, { namespace }: Config, read: Read) {
  const answer = strict({
    from: text('Start of the first hour', '2026-11-20T01:00:00.000000Z'),
    to: text('End of the range, excluded', '2026-11-20T02:00:00.000000Z'),
    data: Type.Array(Hour, { description: 'Newest hour first; hours without a pill are left out' }),
  });
  return generatorRoute({
    url: '/api/generator/summary',
    summary: 'Count what became of your pills, by hour, outcome and reason',
    description:
      'The last day by default, at most 7 days. Figures follow within seconds. What ingest ' +
      'answered is counted exactly, except that a killed process loses at most its last second; ' +
      'requests that were no well-formed HTTP, or lacked the credential, are counted for no source.',
    query: strict({
      from: Time('Beginning; earlier minutes of its hour are included'),
      to: Time('End, excluded; now by default'),
      source: SourceParameter,
    }),
    answers: { 200: answerOf('The hours.', answer) },
    async handle(request, reply) {
      const caller = generatorOf(request);
      const parsed = parseWindow(request.query, summary, nowMicros());
      if (!parsed.ok) return refuse(reply, 'parameter_invalid', { errors: parsed.faults });
      const { source = request.query.source } = caller;
      const window = { ...parsed.value, since: startOfHour(parsed.value.since) };
      return read(source ?? '', reply, async () => {
        const hours = await readOutcomes(select, namespace, window, source);
        const data = hours.map((one) => ({ ...one, hour: formatTimestamp(one.hour) }));
        return { ...windowBody(window), data };
      });
    },
  });
}

const RefusedPill = strict({
  at: text('When it was received, or appended to the log', '2026-11-20T01:02:03.123456Z'),
  origin: text('Where it was refused; unique', 'http:3f9a1c2b7d3e4f56-1'),
  channel: Channel,
  source: Source,
  code: Code,
  fault: FaultCode,
  reason: text('Why, in words', '#/timestamp: The field is required.'),
  body: text('What was sent, cut at 2 KiB; bytes that are no text are U+FFFD', '{"id":"p-1"}'),
  body_bytes: count('Length before the cut', 12),
});

function rejectedRoute(select: Select, read: Read) {
  return generatorRoute({
    url: '/api/generator/rejected',
    summary: 'List pills that were refused, newest first',
    description:
      'Of the last 30 days: every rejected record of the log, and of what ingest refused a sample, ' +
      'up to 10 of a reason in five minutes. GET /api/generator/summary counts all.',
    query: strict({
      limit: limitOf(page.max, page.byDefault),
      before: optionalText('As in `next` of the previous page', { maxLength: 140 }),
      code: optionalText('Only this code', { maxLength: 64 }),
      channel: choice(['http', 'log'], 'Only this channel'),
      source: SourceParameter,
    }),
    answers: {
      200: answerOf('One page.', strict({ data: Type.Array(RefusedPill), next: Next })),
    },
    async handle(request, reply) {
      const caller = generatorOf(request);
      const { limit = page.byDefault, before: token, code, channel } = request.query;
      const before = token === undefined ? undefined : readRefusedToken(token);
      if (token !== undefined && before === undefined) {
        const hint =
          'Request `next` of the previous page, unchanged; omit `before` for the first page.';
        const errors = [parameterFault('before', 'page_unknown', hint)];
        return refuse(reply, 'parameter_invalid', { errors });
      }
      const { source = request.query.source } = caller;
      return read(source ?? '', reply, async () => {
        const rows = await readRefused(select, { source, code, channel, before, limit });
        const next =
          rows.length < limit
            ? null
            : nextPage(request.url, { before: refusedToken(rows.at(-1)!) });
        return { data: rows.map((row) => ({ ...row, at: formatTimestamp(row.at) })), next };
      });
    },
  });
}
