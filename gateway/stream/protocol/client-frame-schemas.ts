import { type TProperties, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { object, orNull, POSITION_FORM, type ValueOf } from './frame-parts.ts';

const FrameId = Type.Optional(
  Type.String({
    maxLength: LIMITS.frameIdLengthMax,
    description: 'The answer carries the same `id`.',
  }),
);

const request = <const O extends string, P extends TProperties>(op: O, properties: P) =>
  object({ op: Type.Literal(op), id: FrameId, ...properties });

const Symbols = Type.Array(Type.String(), {
  minItems: 1,
  maxItems: LIMITS.symbolsPerConnectionMax,
  description: 'Symbols, or `["*"]` alone for all of them.',
});

const Resume = Type.Union(
  [
    Type.String({ pattern: POSITION_FORM, description: 'A position from a frame of the server.' }),
    object({ since: Type.String({ description: 'A time in UTC, ISO 8601.' }) }),
    Type.Null(),
  ],
  { description: 'Where to resume from.' },
);

const Filter = orNull(
  object({
    min_confidence: Type.Optional(Type.Number({ description: '0 to 100, like `confidence`.' })),
    min_spread: Type.Optional(Type.Number()),
    max_spread: Type.Optional(
      Type.Number({ description: 'Not below `min_spread`; both bound `gross_spread_percent`.' }),
    ),
    states: Type.Optional(
      Type.Array(Type.String(), { minItems: 1, maxItems: LIMITS.filterStatesMax }),
    ),
  }),
  'Pills that do not pass are not sent; `heartbeat` counts them.',
);

/**
 * Every frame that a client may send, by its `op`: the schema that parses and documents it, and the
 * server frames that answer it (an `error` may answer any).
 */
export const CLIENT_FRAMES = {
  auth: {
    summary: `Authenticates the connection if no header or ticket did; the first frame, within ${LIMITS.authTimeoutMs / 1000} s.`,
    schema: request('auth', { key: Type.String({ description: 'An API key.' }) }),
    replies: ['welcome'],
    examples: [{ op: 'auth', key: 'pil_live_…', id: '0' }],
  },
  subscribe: {
    summary:
      'Subscribes to symbols. The latest subscription to a symbol replaces earlier ones; a named symbol takes precedence over `*`.',
    schema: request('subscribe', {
      symbols: Symbols,
      mode: Type.Optional(
        Type.Union([Type.Literal('all'), Type.Literal('latest')], {
          default: 'all',
          description: '`latest`: a slow reader gets only the newest pill of each symbol.',
        }),
      ),
      snapshot: Type.Optional(Type.Boolean({ default: true })),
      backfill: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Also send pills that arrived more than 60 s late.',
        }),
      ),
      resume: Type.Optional(Resume),
      filter: Type.Optional(Filter),
    }),
    replies: ['subscribed', 'gap', 'snapshot', 'pill', 'pills', 'live'],
    examples: [
      {
        op: 'subscribe',
        id: '1',
        symbols: ['7203.T', '0700.HK', '0700 HK'],
        mode: 'all',
        snapshot: true,
        backfill: false,
        resume: 'k7f3:0-77,3-104',
        filter: { min_confidence: 80, min_spread: -1, max_spread: 1, states: ['open'] },
      },
      { op: 'subscribe', id: '2', symbols: ['*'], mode: 'latest', snapshot: false },
    ],
  },
  unsubscribe: {
    summary: 'Ends the subscriptions to symbols.',
    schema: request('unsubscribe', { symbols: Symbols }),
    replies: ['unsubscribed'],
    examples: [{ op: 'unsubscribe', id: '3', symbols: ['0700.HK'] }],
  },
  ping: {
    summary: 'Requests a `pong`, which returns `t`.',
    schema: request('ping', { t: Type.Optional(Type.Number()) }),
    replies: ['pong'],
    examples: [{ op: 'ping', id: '4', t: 1763600000123 }],
  },
} as const;

export type ClientOp = keyof typeof CLIENT_FRAMES;

/** A client frame as its schema lets it through. */
export type CheckedFrame<O extends ClientOp = ClientOp> = {
  [K in O]: ValueOf<(typeof CLIENT_FRAMES)[K]['schema']>;
}[O];

/** The content of a client frame's field, for error messages where its JSON type is too vague. */
export const FIELD_FORMS: Readonly<Record<string, string>> = {
  key: 'an API key',
  symbols: 'an array of 1 to 1,000 symbols, or ["*"]',
  'symbols/*': 'an array of strings',
  resume: 'a position or {"since":"…"}',
  'resume/since': 'a time',
  'filter/states': 'an array of labels',
  'filter/states/*': 'an array of labels',
};
