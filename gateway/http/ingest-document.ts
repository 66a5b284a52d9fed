import { type TSchema, Type } from 'typebox';
import { FUTURE_MAX_MICROS, SPREAD_MAX, SYMBOL_PATTERN } from '../../schemas/pill.ts';
import { PUBLIC_PILL_EXAMPLE } from '../../schemas/public-pill.ts';
import type { ProblemCode } from './problem-catalogue.ts';
import { FaultsSchema, problemAnswers } from './problem-documents.ts';
import { API_VERSION } from './problems.ts';

/** Bounds of a pill's body and of a batch. */
export const PILL_BOUNDS = {
  pillBytesMax: 16 * 1024,
  batchBytesMax: 1024 * 1024,
  batchRowsMax: 1_000,
} as const;

const { pillBytesMax, batchBytesMax, batchRowsMax } = PILL_BOUNDS;
const { id, timestamp, symbol, gross_spread_percent, market_state, confidence } =
  PUBLIC_PILL_EXAMPLE;
const PILL_EXAMPLE = { id, timestamp, symbol, gross_spread_percent, market_state, confidence };

const PillBody = Type.Object(
  {
    id: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Printable characters, chosen by you. The same symbol and id are the same pill',
    }),
    timestamp: Type.String({
      format: 'date-time',
      description:
        'ISO 8601 in UTC (`Z` or `+00:00`), up to microseconds, at most ' +
        `${FUTURE_MAX_MICROS / 60e6} min ahead of the clock`,
    }),
    symbol: Type.String({ pattern: SYMBOL_PATTERN, description: 'Market symbol' }),
    gross_spread_percent: Type.Number({ minimum: -SPREAD_MAX, maximum: SPREAD_MAX }),
    market_state: Type.String({
      minLength: 1,
      maxLength: 32,
      description: 'Letters of any script, digits, spaces or _ - . / : ( ) +',
    }),
    confidence: Type.Number({
      minimum: 0,
      maximum: 100,
      description: 'From 0 to 100, unless the operator has set another limit',
    }),
  },
  { additionalProperties: false, description: 'All six fields are required.' },
);

const BatchAnswer = Type.Object({
  status: Type.Enum(['ok', 'partial']),
  ok: Type.Integer({ description: 'Rows in the log' }),
  replayed: Type.Integer({ description: 'Repeats of known pills, without a second effect' }),
  refused: Type.Integer(),
  unknown: Type.Integer({ description: 'Not acknowledged: send these rows again' }),
  results: Type.Array(
    Type.Object({
      index: Type.Integer({ description: 'Index of the row, from 0' }),
      id: Type.Union([Type.String(), Type.Null()]),
      status: Type.Enum(['refused', 'unknown']),
      errors: Type.Optional(FaultsSchema),
    }),
    { description: 'The rows that are not ok' },
  ),
});

const BATCH_ANSWER_EXAMPLE = {
  ...{ status: 'partial', ok: 998, replayed: 1, refused: 1, unknown: 0 },
  results: [
    {
      ...{ index: 17, id: 'p-18', status: 'refused' },
      errors: [{ pointer: '#/confidence', code: 'not_a_number', detail: 'Got a string.' }],
    },
  ],
};

const ValidateOnly = {
  name: 'validate_only',
  in: 'query',
  description: '`true`: check everything and store nothing; the answer says what would happen',
  schema: Type.Boolean({ default: false }),
};

const PREVIEW = {
  outcome: Type.Enum(['accepted', 'repeated']),
  backfill: Type.Boolean(),
  warnings: Type.Array(Type.String(), { description: 'Codes, as in `Pill-Warning`' }),
};
const DRY_RUN = {
  validate_only: Type.Literal(true),
  stored: Type.Literal('no'),
  late: Type.Null({ description: 'Only the log decides' }),
  not_known: Type.String({ description: 'What this answer cannot know' }),
};
const PillPreview = Type.Object({ ...DRY_RUN, ...PREVIEW });
const BatchPreview = Type.Object({
  ...DRY_RUN,
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      id: Type.Union([Type.String(), Type.Null()]),
      ...Type.Partial(Type.Object(PREVIEW)).properties,
      status: Type.Optional(Type.Enum(['refused', 'unknown'])),
      errors: Type.Optional(FaultsSchema),
    }),
    { description: 'Every row: what would happen, or why it would be refused' },
  ),
});

const HEADERS = {
  'Pill-Warning': {
    description: '`market_state_unknown`, `very_old`, or both; absent otherwise',
    schema: { type: 'string' },
    example: 'very_old',
  },
  'Server-Timing': { schema: { type: 'string' }, example: 'parse;dur=0.1, log;dur=1.4' },
};
const PILL_HEADERS = {
  ...HEADERS,
  'Pill-Cursor': {
    description: 'Where the pill is in the log',
    schema: { type: 'string' },
    example: '3-132',
  },
  'Idempotent-Replayed': {
    description: '`true` for a repeat of a known pill; absent otherwise',
    schema: { type: 'string' },
    example: 'true',
  },
};

const PROBLEMS: readonly ProblemCode[] = [
  ...(['http_malformed', 'credential_missing', 'credential_invalid', 'local_only'] as const),
  ...(['proxy_refused', 'request_timeout', 'body_too_large', 'media_type_unsupported'] as const),
  ...(['headers_too_large', 'overloaded', 'log_unavailable', 'parameter_invalid'] as const),
];

const content = (schema: TSchema, example: unknown) => ({ schema, example });

const PILL_ANSWER = {
  'application/json': content(
    Type.Union([Type.Object({ status: Type.Literal('ok') }), PillPreview]),
    { status: 'ok' },
  ),
};
const BATCH_BODY = {
  'application/json': content(Type.Array(PillBody, { minItems: 1, maxItems: batchRowsMax }), [
    PILL_EXAMPLE,
  ]),
  'application/x-ndjson': content(
    Type.String({ description: 'One pill per line' }),
    `${JSON.stringify(PILL_EXAMPLE)}\n`,
  ),
};
const BATCH_ANSWER = {
  'application/json': content(Type.Union([BatchAnswer, BatchPreview]), BATCH_ANSWER_EXAMPLE),
};

/** How a generator's operations are called, wherever they are documented. */
export const INGEST_TAG = {
  name: 'ingest',
  description: 'Send pills, to the address of ingest: for generators, not for customers',
};
export const GENERATOR_SCHEME = {
  type: 'http',
  scheme: 'bearer',
  description:
    'A generator credential, `gen_…`, from the operator. An ingest server that only this machine ' +
    'can reach may be open; it then needs none.',
} as const;

/**
 * The paths of ingest in OpenAPI 3.1.
 * @param ingestUrl stated as the server of each operation; undefined in ingest's own document
 */
export function ingestPaths(ingestUrl?: string) {
  const operation = (of: object, problems: readonly ProblemCode[]) => ({
    post: {
      tags: [INGEST_TAG.name],
      ...of,
      parameters: [ValidateOnly],
      'x-tier': 'none',
      ...(ingestUrl === undefined ? {} : { servers: [{ url: ingestUrl }] }),
      security: [{ generator: [] }, {}],
      responses: { ...(of as { responses: object }).responses, ...answersOf(problems) },
    },
  });
  return {
    '/api/pillole': operation(
      {
        operationId: 'postPillole',
        summary: 'Send a pill',
        description:
          'Answers `ok` only when the log has acknowledged the pill. After 503, and after no ' +
          'answer, send it again with the same id: a repeat has no second effect. Every error ' +
          `says in \`stored\` whether the pill is in the log. At most ${pillBytesMax} bytes.`,
        requestBody: {
          required: true,
          content: { 'application/json': content(PillBody, PILL_EXAMPLE) },
        },
        responses: {
          200: {
            description: 'The pill is in the log; with `validate_only`, what would happen.',
            headers: PILL_HEADERS,
            content: PILL_ANSWER,
          },
        },
      },
      ['pill_invalid', 'id_conflict', 'symbol_limit', ...PROBLEMS],
    ),
    '/api/pillole/batch': operation(
      {
        operationId: 'postPilloleBatch',
        summary: `Send up to ${batchRowsMax} pills`,
        description:
          'Each row has an outcome of its own: one that is refused does not affect the others. ' +
          `At most ${batchBytesMax} bytes, uncompressed.`,
        requestBody: {
          required: true,
          content: BATCH_BODY,
        },
        responses: {
          200: {
            description: '`ok`: all rows are in the log. `partial`: `results` has the others.',
            headers: HEADERS,
            content: BATCH_ANSWER,
          },
        },
      },
      ['batch_invalid', ...PROBLEMS],
    ),
  };
}

/** Problems as OpenAPI answers; every error of ingest says whether the pill is stored. */
function answersOf(codes: readonly ProblemCode[]): object {
  const answers = Object.entries(problemAnswers(codes)).map(([status, { headers, ...answer }]) => {
    const wrapped = Object.entries(headers).map(([name, schema]) => [name, { schema }]);
    return [status, { ...answer, headers: Object.fromEntries(wrapped) }];
  });
  return Object.fromEntries(answers);
}

/** The OpenAPI 3.1 document that ingest serves itself. */
export function ingestDocument() {
  return {
    openapi: '3.1.0',
    info: {
      title: 'pillole ingest',
      version: API_VERSION,
      description:
        'Where generators send pills. Every error is a problem of RFC 9457 with a stable `code`; ' +
        'GET /problems lists them, and the codes of single faults.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [INGEST_TAG],
    paths: ingestPaths(),
    components: { securitySchemes: { generator: GENERATOR_SCHEME } },
  };
}
