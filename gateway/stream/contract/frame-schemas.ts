import { Type } from 'typebox';
import { QUIET_REASONS } from '../../../lib/signal/silence.ts';
import { LIMITS } from '../limits.ts';
import { SUMMARY_SYMBOLS } from '../quiet/quiet-frames.ts';
import { ErrorSchema } from './frame-schemas-error.ts';
import {
  CountSchema,
  CursorOrNull,
  CursorSchema,
  closed,
  Id,
  Millis,
  oneOf,
  PILL,
  PositionSchema,
  ROW,
  TimeSchema,
} from './frame-schemas-pill.ts';
import { RESUME_REASONS } from './resume-reasons.ts';

const RESUME_AGE =
  'Positions of this age are resumed from, unless more came since than one replay carries ' +
  `(${LIMITS.replayPillsMax} pills that match) or reads (${LIMITS.replayRecordsMax} beyond what ` +
  'memory holds); older ones are not promised.';
const Reason = oneOf(Object.keys(RESUME_REASONS), 'Why a resume was not possible.');

/** Of the `quiet` frame for all: no pill of any symbol comes. */
const GENERATOR_SILENT = 'generator_silent';

const GeneratorSchema = Type.Object(
  {
    state: oneOf(['alive', 'silent', 'never', 'unknown'], '`unknown`: the log is away (`status`).'),
    last_received_at: Type.Union([TimeSchema, Type.Null()]),
    age_ms: Type.Union([CountSchema('Of the last pill.'), Type.Null()]),
    late_after_ms: CountSchema('Longer without a pill is `silent`.'),
    in_session: Type.Union([Type.Boolean(), Type.Null()], {
      description: 'Whether a market of what it sends is open; null where no calendar tells.',
    }),
  },
  closed,
);

/** Payload of every frame that the server sends, by its `type`. */
export const SERVER_FRAME_SCHEMAS = {
  welcome: Type.Object(
    {
      type: Type.Literal('welcome'),
      version: Type.String(),
      session: Type.String(),
      account: Type.String(),
      tier: Type.String(),
      epoch: Type.String({ description: 'Of the log; positions begin with it.' }),
      time: TimeSchema,
      heartbeat_ms: Millis,
      limits: Type.Object(
        {
          connections: CountSchema('Of the account.'),
          symbols: CountSchema('That one connection may name; `*` is free.'),
          frames_in_per_s: CountSchema('Frames of the client.'),
          frame_in_bytes: CountSchema('One frame of the client.'),
          queue_bytes: CountSchema('What may wait unread.'),
          resume_max_age_s: CountSchema(RESUME_AGE),
        },
        closed,
      ),
    },
    closed,
  ),
  subscribed: Type.Object(
    {
      type: Type.Literal('subscribed'),
      id: Id,
      accepted: Type.Array(Type.String()),
      rejected: Type.Array(
        Type.Object(
          { symbol: Type.String(), code: oneOf(['symbol_malformed', 'symbol_limit']) },
          closed,
        ),
      ),
      never_seen: Type.Array(Type.String(), {
        description: 'Accepted, but no pill of them has come yet.',
      }),
      mode: oneOf(['all', 'latest']),
      recovered: Type.Union([Type.Boolean(), Type.Null()], {
        description: 'null = no resume was asked for; false = see `reason`.',
      }),
      reason: Type.Union([Reason, Type.Null()]),
      oldest: Type.Optional(PositionSchema),
      replaying: CountSchema('Pills of the replay that follows.'),
      position: PositionSchema,
    },
    closed,
  ),
  snapshot: Type.Object(
    {
      type: Type.Literal('snapshot'),
      id: Id,
      pills: Type.Array(Type.Object(ROW, closed)),
      last: Type.Boolean({ description: 'false = more frames of it follow.' }),
      position: PositionSchema,
    },
    closed,
  ),
  live: Type.Object(
    {
      type: Type.Literal('live'),
      id: Id,
      replayed: CountSchema('Pills of the replay.'),
      position: PositionSchema,
    },
    closed,
  ),
  pill: Type.Object({ type: Type.Literal('pill'), ...PILL, sent_at: TimeSchema }, closed),
  pills: Type.Object(
    {
      type: Type.Literal('pills'),
      sent_at: TimeSchema,
      pills: Type.Array(Type.Object(PILL, closed), { minItems: 1 }),
    },
    closed,
  ),
  gap: Type.Object(
    {
      type: Type.Literal('gap'),
      symbols: Type.Array(Type.String(), { minItems: 1 }),
      after: CursorOrNull('Exclusive; null is the beginning of the partition.'),
      until: CursorSchema,
      reason: Reason,
      fill: Type.Union([Type.String(), Type.Null()], {
        description: 'Path and query of the REST call that has them; null where none has.',
      }),
      fill_free: Type.Boolean({
        description: 'That call costs none; true where the position was within `resume_max_age_s`.',
      }),
    },
    closed,
  ),
  quiet: Type.Object(
    {
      type: Type.Literal('quiet'),
      symbol: Type.String({ description: '`*` = a sum of many, or of all.' }),
      venue: Type.Optional(Type.String()),
      reason: oneOf([...Object.keys(QUIET_REASONS), GENERATOR_SILENT], 'Why no pill comes.'),
      since: Type.Union([TimeSchema, Type.Null()]),
      until: Type.Union([TimeSchema, Type.Null()], {
        description: 'When pills are expected again; where it is over, when one came.',
      }),
      late_after_ms: Type.Optional(CountSchema('Longer without a pill is late.')),
      over: Type.Optional(Type.Literal(true, { description: 'Pills come again.' })),
      count: Type.Optional(CountSchema('Symbols that a sum stands for.')),
      symbols: Type.Optional(
        Type.Array(Type.String(), {
          maxItems: SUMMARY_SYMBOLS,
          description: 'The first of them.',
        }),
      ),
    },
    closed,
  ),
  heartbeat: Type.Object(
    {
      type: Type.Literal('heartbeat'),
      time: TimeSchema,
      position: PositionSchema,
      sent: CountSchema('Pills since the connection began.'),
      filtered: CountSchema('Pills that the filters kept away.'),
      skipped: CountSchema('Pills that `latest` left out.'),
      queue_bytes: CountSchema('What waits unread.'),
      queue_ms: CountSchema('For how long the oldest of it waits.'),
      generator: GeneratorSchema,
    },
    closed,
  ),
  status: Type.Object(
    {
      type: Type.Literal('status'),
      time: TimeSchema,
      component: Type.Literal('log'),
      state: oneOf(['up', 'down']),
      code: oneOf(['log_unreachable', 'log_reachable']),
      since: TimeSchema,
      until: Type.Union([TimeSchema, Type.Null()]),
      message: Type.String(),
    },
    closed,
  ),
  drain: Type.Object(
    {
      type: Type.Literal('drain'),
      reason: Type.String(),
      grace_ms: CountSchema('The close comes within this.'),
      reconnect_after_ms: CountSchema('Wait so long before you connect again.'),
      position: PositionSchema,
    },
    closed,
  ),
  unsubscribed: Type.Object(
    {
      type: Type.Literal('unsubscribed'),
      id: Id,
      symbols: Type.Array(Type.String(), { description: 'Those whose subscription ended.' }),
      remaining: CountSchema('Subscriptions that are left, `*` counts as one.'),
    },
    closed,
  ),
  pong: Type.Object(
    { type: Type.Literal('pong'), id: Id, t: Type.Optional(Type.Number()), time: TimeSchema },
    closed,
  ),
  error: ErrorSchema,
} as const;

export type ServerFrameType = keyof typeof SERVER_FRAME_SCHEMAS;
