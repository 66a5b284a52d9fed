import { type TProperties, Type } from 'typebox';
import { QUIET_REASONS } from '../../../domain/market/quiet/silence.ts';
import { LIMITS } from '../limits.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES, type ErrorName, type FatalName } from './error-codes.ts';
import {
  CursorSchema,
  countOf,
  cursorOrNull,
  Millis,
  namesOf,
  object,
  oneOf,
  orNull,
  PILL,
  PositionSchema,
  ReplyId,
  SNAPSHOT_PILL,
  TimeSchema,
  type ValueOf,
} from './frame-parts.ts';
import { RESUME_REASONS } from './resume-reasons.ts';

const RESUME_AGE =
  'A resume from a position of up to this age succeeds, unless more pills have arrived since than ' +
  `one replay can carry (${LIMITS.replayPillsMax} matching pills) or read (${LIMITS.replayRecordsMax} ` +
  'records beyond those in memory). Resumes from older positions may fail.';
const Reason = oneOf(namesOf(RESUME_REASONS), 'Why a resume was not possible.');

/** `reason` of the `quiet` frame for all symbols: the generator sends nothing. */
const GENERATOR_SILENT = 'generator_silent';

const GeneratorSchema = object({
  state: oneOf(
    ['alive', 'silent', 'never', 'unknown'],
    '`unknown`: the log is unreachable (`status`).',
  ),
  last_received_at: orNull(TimeSchema),
  age_ms: orNull(countOf('Age of the last pill.')),
  late_after_ms: countOf('The generator is `silent` after this time without a pill.'),
  in_session: orNull(
    Type.Boolean(),
    'Whether a market of its symbols is open; null if no symbol has a calendar for this time.',
  ),
});

const isFatal = (name: ErrorName): name is FatalName => 'close' in ERROR_CODES[name];
const ERRORS = namesOf(ERROR_CODES);
const FATAL = ERRORS.filter(isFatal);
const NOT_FATAL = ERRORS.filter((name): name is Exclude<ErrorName, FatalName> => !isFatal(name));

const SessionSchema = object({
  session: Type.String(),
  since: TimeSchema,
  address: Type.String(),
  key: Type.String({ description: 'The first and last characters of the key.' }),
  queue_ms: Millis,
});

const MessageSchema = Type.String({ description: 'For people; programs read `code`.' });

/** `error` has two forms, so a client needs only `fatal` to decide whether the connection ends. */
const ErrorSchema = Type.Union([
  object({
    type: Type.Literal('error'),
    id: ReplyId,
    code: oneOf(NOT_FATAL),
    message: MessageSchema,
    fatal: Type.Literal(false),
  }),
  object({
    type: Type.Literal('error'),
    id: ReplyId,
    code: oneOf(FATAL),
    message: MessageSchema,
    fatal: Type.Literal(true),
    close: Type.Unsafe<number>(
      Type.Union(
        Object.values(CLOSE_CODES).map(({ code }) => Type.Literal(code)),
        { description: 'The close code that ends the connection.' },
      ),
    ),
    retry_after_ms: Type.Optional(Millis),
    position: Type.Optional(
      orNull(PositionSchema, 'Resume from here; null: subscribe without `resume`.'),
    ),
    limit: Type.Optional(countOf('Connections that may be open.')),
    sessions: Type.Optional(
      Type.Array(SessionSchema, { description: 'The sessions that are open.' }),
    ),
    reason: Type.Optional(
      oneOf(['operator', 'payment_due', 'closed'], 'Why the account is suspended.'),
    ),
    tier: Type.Optional(Type.String({ description: 'The tier of the account.' })),
    needs: Type.Optional(
      Type.String({ description: 'The lowest tier that includes this service.' }),
    ),
  }),
]);

const frame = <const T extends string, P extends TProperties>(type: T, properties: P) =>
  object({ type: Type.Literal(type), ...properties });

/** The schema of every server frame, by its `type`. Documents, types and tests come from these. */
export const SERVER_FRAME_SCHEMAS = {
  welcome: frame('welcome', {
    version: Type.String(),
    session: Type.String(),
    account: Type.String(),
    tier: Type.String(),
    epoch: Type.String({ description: 'Epoch of the log; positions begin with it.' }),
    time: TimeSchema,
    heartbeat_ms: Millis,
    limits: object({
      connections: countOf('Connections of the account.'),
      symbols: countOf('Symbols that one connection may name; `*` does not count.'),
      frames_in_per_s: countOf('Client frames per second.'),
      frame_in_bytes: countOf('Size of one client frame.'),
      queue_bytes: countOf('Unread data that may be queued.'),
      resume_max_age_s: countOf(RESUME_AGE),
    }),
  }),
  subscribed: frame('subscribed', {
    id: ReplyId,
    accepted: Type.Array(Type.String()),
    rejected: Type.Array(
      object({
        symbol: Type.String(),
        code: oneOf(['symbol_malformed', 'symbol_refused', 'symbol_limit']),
      }),
    ),
    never_seen: Type.Array(Type.String(), {
      description: 'Accepted symbols of which no pill has ever arrived.',
    }),
    mode: oneOf(['all', 'latest']),
    recovered: orNull(Type.Boolean(), 'null: no resume was requested; false: see `reason`.'),
    reason: orNull(Reason),
    oldest: Type.Optional(PositionSchema),
    replaying: countOf('Pills in the replay that follows.'),
    position: PositionSchema,
  }),
  snapshot: frame('snapshot', {
    id: ReplyId,
    pills: Type.Array(object(SNAPSHOT_PILL)),
    last: Type.Boolean({ description: 'false: more frames of this snapshot follow.' }),
    position: PositionSchema,
  }),
  live: frame('live', {
    id: ReplyId,
    replayed: countOf('Pills in the replay.'),
    position: PositionSchema,
  }),
  pill: frame('pill', { ...PILL, sent_at: TimeSchema }),
  pills: frame('pills', { sent_at: TimeSchema, pills: Type.Array(object(PILL), { minItems: 1 }) }),
  gap: frame('gap', {
    symbols: Type.Array(Type.String(), { minItems: 1 }),
    after: cursorOrNull('Exclusive; null: from the beginning of the partition.'),
    until: CursorSchema,
    reason: Reason,
    fill: orNull(
      Type.String(),
      'Path and query of the REST call that returns these pills; null if none does.',
    ),
    fill_free: Type.Boolean({
      description:
        'The call does not count against the quota; true if the position was within `resume_max_age_s`.',
    }),
  }),
  quiet: frame('quiet', {
    symbol: Type.String({
      description: '`*`: a summary of a venue that sends nothing, or of all symbols.',
    }),
    venue: Type.Optional(Type.String()),
    reason: oneOf([...namesOf(QUIET_REASONS), GENERATOR_SILENT], 'Why no pills arrive.'),
    since: orNull(TimeSchema),
    until: orNull(TimeSchema, 'When pills are expected again; with `over`, when a pill arrived.'),
    late_after_ms: Type.Optional(countOf('The symbol is late after this time without a pill.')),
    over: Type.Optional(Type.Literal(true, { description: 'The quiet period has ended.' })),
    count: Type.Optional(countOf('Number of symbols in the summary.')),
    symbols: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: LIMITS.quietSummarySymbolsMax,
        description: 'The first symbols of the summary.',
      }),
    ),
  }),
  heartbeat: frame('heartbeat', {
    time: TimeSchema,
    position: PositionSchema,
    sent: countOf('Pills sent since the connection opened.'),
    filtered: countOf('Pills that the filters rejected.'),
    skipped: countOf('Pills that `latest` mode left out.'),
    queue_bytes: countOf('Unread bytes in the queue.'),
    queue_ms: countOf('How long the oldest of them has been waiting.'),
    generator: GeneratorSchema,
  }),
  status: frame('status', {
    time: TimeSchema,
    component: Type.Literal('log'),
    state: oneOf(['up', 'down']),
    code: oneOf(['log_unreachable', 'log_reachable']),
    since: TimeSchema,
    until: orNull(TimeSchema),
    message: Type.String(),
  }),
  drain: frame('drain', {
    reason: Type.String(),
    grace_ms: countOf('The connection closes within this time.'),
    reconnect_after_ms: countOf('Wait this long before connecting again.'),
    position: PositionSchema,
  }),
  unsubscribed: frame('unsubscribed', {
    id: ReplyId,
    symbols: Type.Array(Type.String(), { description: 'Symbols whose subscription ended.' }),
    remaining: countOf('Remaining subscriptions; `*` counts as one.'),
  }),
  pong: frame('pong', { id: ReplyId, t: Type.Optional(Type.Number()), time: TimeSchema }),
  error: ErrorSchema,
} as const;

export type ServerFrameType = keyof typeof SERVER_FRAME_SCHEMAS;

/** A server frame as its schema describes it. */
export type ServerFrame<T extends ServerFrameType = ServerFrameType> = {
  [K in T]: ValueOf<(typeof SERVER_FRAME_SCHEMAS)[K]>;
}[T];
