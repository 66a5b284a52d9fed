import { Type } from 'typebox';
import { LIMITS } from '../limits.ts';

const closed = { additionalProperties: false } as const;

const FrameId = Type.Optional(
  Type.String({
    maxLength: LIMITS.frameIdLengthMax,
    description: 'The answer carries it back.',
  }),
);

const Symbols = Type.Array(Type.String(), {
  minItems: 1,
  maxItems: LIMITS.symbolsPerConnectionMax,
  description: 'Symbols, or `["*"]` alone for all of them.',
});

const Position = Type.String({
  pattern: '^[a-z0-9]{1,16}:(\\d{1,5}-\\d{1,16}(,\\d{1,5}-\\d{1,16})*)?$',
  description: 'A position as frames of the server carry it.',
});

const Resume = Type.Union(
  [
    Position,
    Type.Object({ since: Type.String({ description: 'A time in UTC, ISO 8601.' }) }, closed),
    Type.Null(),
  ],
  { description: 'Where to go on from.' },
);

const Filter = Type.Union(
  [
    Type.Object(
      {
        min_confidence: Type.Optional(Type.Number()),
        min_spread: Type.Optional(Type.Number()),
        max_spread: Type.Optional(
          Type.Number({
            description: 'Not below `min_spread`. Both are of `gross_spread_percent`.',
          }),
        ),
        states: Type.Optional(
          Type.Array(Type.String(), { minItems: 1, maxItems: LIMITS.filterStatesMax }),
        ),
      },
      closed,
    ),
    Type.Null(),
  ],
  { description: 'Pills that do not pass are counted in `heartbeat`, not sent.' },
);

/** Every frame that a client may send, by its `op`. */
export const CLIENT_FRAMES = {
  auth: {
    summary: `Says who connects, where no header or ticket did: the first frame, within ${LIMITS.authTimeoutMs / 1000} s.`,
    schema: Type.Object(
      { op: Type.Literal('auth'), id: FrameId, key: Type.String({ description: 'An API key.' }) },
      closed,
    ),
    examples: [{ op: 'auth', key: 'pil_live_…', id: '0' }],
  },
  subscribe: {
    summary:
      'Asks for pills of symbols; the last one wins for each symbol, and a named symbol beats `*`.',
    schema: Type.Object(
      {
        op: Type.Literal('subscribe'),
        id: FrameId,
        symbols: Symbols,
        mode: Type.Optional(
          Type.Union([Type.Literal('all'), Type.Literal('latest')], {
            default: 'all',
            description: '`latest`: a slow reader gets the newest of each symbol.',
          }),
        ),
        snapshot: Type.Optional(Type.Boolean({ default: true })),
        backfill: Type.Optional(
          Type.Boolean({ default: false, description: 'Also pills that reached us late by 60 s.' }),
        ),
        resume: Type.Optional(Resume),
        filter: Type.Optional(Filter),
      },
      closed,
    ),
    examples: [
      {
        op: 'subscribe',
        id: '1',
        symbols: ['7203.T', '0700.HK', '0700 HK'],
        mode: 'all',
        snapshot: true,
        backfill: false,
        resume: 'k7f3:0-77,3-104',
        filter: { min_confidence: 0.8, min_spread: -1, max_spread: 1, states: ['open'] },
      },
      { op: 'subscribe', id: '2', symbols: ['*'], mode: 'latest', snapshot: false },
    ],
  },
  unsubscribe: {
    summary: 'Ends the subscriptions of symbols.',
    schema: Type.Object({ op: Type.Literal('unsubscribe'), id: FrameId, symbols: Symbols }, closed),
    examples: [{ op: 'unsubscribe', id: '3', symbols: ['0700.HK'] }],
  },
  ping: {
    summary: 'Asks for a `pong`, which gives `t` back.',
    schema: Type.Object(
      { op: Type.Literal('ping'), id: FrameId, t: Type.Optional(Type.Number()) },
      closed,
    ),
    examples: [{ op: 'ping', id: '4', t: 1763600000123 }],
  },
} as const;
