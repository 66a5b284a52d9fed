import { type Static, type TObject, type TSchema, Type } from 'typebox';
import { PUBLIC_PILL_EXAMPLE } from '../../../schemas/public-pill.ts';
import {
  EndpointId,
  LAST_ATTEMPT,
  PAYMENT_DUE,
  Pill,
  STRICT,
  SubscriptionStatus,
  Tier,
  Time,
} from './event-fields.ts';

/** At these shares of `DISABLE_AFTER_S` the owner of a failing endpoint is warned, %. */
export const WARN_PERCENTS = [50, 70, 90] as const;

const ENDPOINT = 'whe_k3m9x2p7q4ab';
const URL = 'https://example.com';
const PILL = { epoch: 'k7f3', ...PUBLIC_PILL_EXAMPLE } as const;
const LATE_PILL = {
  ...PILL,
  cursor: '0-91',
  prev: '0-90',
  id: 'p-12',
  timestamp: '2026-11-20T01:01:58.000000Z',
  symbol: '0700.HK',
  gross_spread_percent: 0.09,
  confidence: 70,
  received_at: '2026-11-20T01:02:03.017000Z',
  late: true,
} as const;

/**
 * Every type of body that webhooks may carry. A new event needs an entry here, and code that raises
 * it.
 */
const EVENTS = {
  'pill.published': event({
    raised: 'A pill that passes the filter of the endpoint was published.',
    advice:
      'Compare received_at with your clock, and act on the pill if it is recent enough for you. ' +
      'Ignore a pill whose cursor is below one that you have of the same symbol.',
    data: Pill,
    timestamp: '2026-11-20T01:02:03.011000Z',
    example: PILL,
  }),
  'pills.published': event({
    raised:
      'Several such pills were joined in one body of at most 20 kB: they came faster than 50 a ' +
      'second, they waited while the endpoint did not answer, or you asked for a replay (then ' +
      'replayed is true). Endpoints that ask for pill.published get both types.',
    advice:
      'Handle each pill of data.pills like one of pill.published. Replayed pills are for your ' +
      'records; do not trade on them. timestamp is the receive time of the oldest pill.',
    data: Type.Object(
      {
        pills: Type.Array(Pill, { minItems: 1 }),
        replayed: Type.Optional(
          Type.Literal(true, {
            description: 'The owner of the endpoint asked for a replay; absent otherwise',
          }),
        ),
      },
      STRICT,
    ),
    timestamp: '2026-11-20T01:02:03.011000Z',
    example: { pills: [PILL, LATE_PILL] },
  }),
  'endpoint.test': event({
    raised:
      'The endpoint was created, its URL was changed, or a test was requested. Every endpoint gets ' +
      'this event, whatever types it asks for.',
    advice:
      'Answer 2xx with data.challenge in the body, within 15 s. Until then the endpoint is pending ' +
      'and gets no other event.',
    data: Type.Object(
      {
        endpoint: EndpointId,
        challenge: Type.String({ description: 'Text that the answer must contain' }),
      },
      STRICT,
    ),
    timestamp: '2026-11-20T01:00:00.000000Z',
    example: { endpoint: ENDPOINT, challenge: 'whc_5f0c9a7e2b1d4c685f0c9a7e2b1d4c68' },
  }),
  'quota.warning': event({
    raised:
      '80, 95 or 100 % of the calls of a UTC day are used; once a day each. Webhooks cost no calls.',
    advice:
      'Make fewer calls until resets_at, or move to a larger plan. At 100 %, calls are refused with 429.',
    data: Type.Object(
      {
        policy: Type.Literal('daily'),
        percent: Type.Enum([80, 95, 100]),
        used: Type.Integer({ minimum: 1 }),
        limit: Type.Integer({ minimum: 1 }),
        resets_at: Time,
      },
      STRICT,
    ),
    timestamp: '2026-11-20T09:00:00.000000Z',
    example: {
      policy: 'daily',
      percent: 80,
      used: 8000,
      limit: 10000,
      resets_at: '2026-11-21T00:00:00.000000Z',
    },
  }),
  'key.expiring': event({
    raised:
      'A key expires in 7 days; once. Not for keys that are valid for less than 14 days, revoked, ' +
      'or being rotated.',
    advice: 'Rotate the key: POST /api/keys/{id}/rotate.',
    data: Type.Object(
      {
        key: Type.String({ pattern: '^key_[a-z0-9]{12}$', description: 'Id of the key' }),
        hint: Type.String({ description: 'The key as lists show it' }),
        name: Type.String(),
        expires_at: Time,
      },
      STRICT,
    ),
    timestamp: '2026-11-20T01:00:00.000000Z',
    example: {
      key: 'key_p7w2m4x9c3de',
      hint: 'pil_live_…ab12',
      name: 'trading desk',
      expires_at: '2026-11-27T00:30:00.250000Z',
    },
  }),
  'subscription.changed': event({
    raised:
      'The plan was bought, changed, cancelled, resumed, paid after it was due, or has ended, or a ' +
      'lower tier was chosen for the next period. A mere ' +
      'renewal raises no event.',
    advice:
      'Adapt to the limits of the plan; GET /api/account shows them. After a downgrade the oldest ' +
      'five endpoints stay in use.',
    data: Type.Object(
      {
        tier: Tier,
        status: SubscriptionStatus,
        previous_tier: Type.Union([Tier, Type.Null()], {
          description: 'null = there was no subscription',
        }),
        previous_status: Type.Union([SubscriptionStatus, Type.Null()]),
        period_end: Time,
        cancel_at_period_end: Type.Boolean(),
        next_tier: Type.Union([Tier, Type.Null()], {
          description: 'the lower tier from period_end on; null = the same',
        }),
      },
      STRICT,
    ),
    timestamp: '2026-11-20T09:00:00.250000Z',
    example: {
      tier: 'institutional',
      status: 'active',
      previous_tier: 'pro',
      previous_status: 'active',
      period_end: '2026-12-20T09:00:00.000000Z',
      cancel_at_period_end: false,
      next_tier: null,
    },
  }),
  'payment.failed': event({
    raised:
      'A payment was refused. You keep full access until access_ends_at, 7 days after the first failure.',
    advice: 'Pay, or update your card at the billing provider.',
    data: Type.Object({ ...PAYMENT_DUE, past_due_since: Time, access_ends_at: Time }, STRICT),
    timestamp: '2026-11-20T09:00:00.250000Z',
    example: {
      tier: 'pro',
      days_left: 7,
      past_due_since: '2026-11-20T09:00:00.000000Z',
      access_ends_at: '2026-11-27T09:00:00.000000Z',
    },
  }),
  'payment.reminder': event({
    raised: 'A payment is still due: once on each of the days 1 to 6 after the failure.',
    advice: 'Pay before access_ends_at, when streams, webhooks and calls stop.',
    data: Type.Object({ ...PAYMENT_DUE, past_due_since: Time, access_ends_at: Time }, STRICT),
    timestamp: '2026-11-21T09:00:10.000000Z',
    example: {
      tier: 'pro',
      days_left: 6,
      past_due_since: '2026-11-20T09:00:00.000000Z',
      access_ends_at: '2026-11-27T09:00:00.000000Z',
    },
  }),
  'endpoint.failing': event({
    raised:
      'No delivery to an endpoint has succeeded since failing_since: sent at 50, 70 and 90 % of the ' +
      '76 hours until the endpoint is disabled, to your other endpoints and by mail.',
    advice:
      'Repair the receiver; last_status and last_reason show what is wrong. One success ends the ' +
      'failure.',
    data: Type.Object(
      {
        ...LAST_ATTEMPT,
        failing_since: Time,
        percent: Type.Enum([...WARN_PERCENTS]),
        disabled_at: Time,
      },
      STRICT,
    ),
    timestamp: '2026-11-21T15:00:00.000000Z',
    example: {
      endpoint: ENDPOINT,
      url: URL,
      failing_since: '2026-11-20T01:00:00.000000Z',
      percent: 50,
      disabled_at: '2026-11-23T05:00:00.000000Z',
      last_status: 503,
      last_reason: 'status',
    },
  }),
  'endpoint.disabled': event({
    raised:
      'An endpoint was disabled: after 76 hours without a success (failing), or at once because it ' +
      'answered 410 (gone). Sent to your other endpoints and by mail.',
    advice:
      'Repair the receiver and send {"status":"enabled"} with PATCH /api/webhooks/{id}: the endpoint ' +
      'gets a new challenge. Once it has answered, make the call in recover to get the messages ' +
      'that were given up.',
    data: Type.Object(
      {
        ...LAST_ATTEMPT,
        reason: Type.Enum(['failing', 'gone']),
        failing_since: Type.Union([Time, Type.Null()]),
        recover: Type.String({
          pattern: '^POST /api/webhooks/whe_[a-z0-9]{12}/recover$',
          description: 'The call that posts the missed messages again',
        }),
      },
      STRICT,
    ),
    timestamp: '2026-11-23T05:00:00.000000Z',
    example: {
      endpoint: ENDPOINT,
      url: URL,
      reason: 'failing',
      failing_since: '2026-11-20T01:00:00.000000Z',
      last_status: null,
      last_reason: 'timeout',
      recover: `POST /api/webhooks/${ENDPOINT}/recover`,
    },
  }),
};

/** `type` of a body. */
export type MessageType = keyof typeof EVENTS;
/**
 * Types that an endpoint may ask for: not those sent with `pill.published` or to every endpoint.
 */
export type EventType = Exclude<MessageType, 'pills.published' | 'endpoint.test'>;

export const EVENT_TYPES = Object.keys(EVENTS).filter(
  (type): type is EventType => type !== 'pills.published' && type !== 'endpoint.test',
);

interface Body<Type extends MessageType> {
  readonly type: Type;
  /** UTC with six decimals. */
  readonly timestamp: string;
  readonly data: Static<(typeof EVENTS)[Type]['data']>;
}

/** A body of any type. */
export type WebhookExample = { [Type in MessageType]: Body<Type> }[MessageType];

/** A type of event, as pages and tests describe it. */
export interface EventEntry<Type extends MessageType = MessageType> {
  readonly type: Type;
  /** When it is raised. */
  readonly raised: string;
  /** The action that its receiver should take. */
  readonly advice: string;
  /** Schema of the body; no other members are ever sent. */
  readonly schema: TSchema;
  readonly example: Body<Type>;
}

/** Every type of body: its cause, the action to take, schema, example. */
export const EVENT_CATALOGUE = Object.fromEntries(
  Object.entries(EVENTS).map(([type, { raised, advice, data, timestamp, example }]) => {
    const schema = Type.Object({ type: Type.Literal(type), timestamp: Time, data }, STRICT);
    return [type, { type, raised, advice, schema, example: { type, timestamp, data: example } }];
  }),
) as unknown as { readonly [Type in MessageType]: EventEntry<Type> };

const TIME_MEMBERS = new Map(
  Object.entries(EVENTS).map(([type, { data }]) => {
    const members = Object.entries<TSchema & { anyOf?: TSchema[] }>(data.properties);
    const times = members.filter(([, schema]) => (schema.anyOf ?? [schema]).includes(Time));
    return [type, times.map(([name]) => name)];
  }),
);

/** The members of an event's data that are times. */
export function timeMembersOf(type: MessageType): readonly string[] {
  return TIME_MEMBERS.get(type) ?? [];
}

/** Ties the example to the schema of its data. */
function event<Data extends TObject>(entry: {
  readonly raised: string;
  readonly advice: string;
  readonly data: Data;
  readonly timestamp: string;
  readonly example: Static<Data>;
}) {
  return entry;
}
