import type { Static, TSchema } from 'typebox';
import { bodySchema, type EVENT_DATA } from './event-schemas.ts';
import type { MessageType } from './event-types.ts';

/** What is said of a type of event, wherever it is described. */
export interface EventEntry<Type extends MessageType = MessageType> {
  readonly type: Type;
  /** When it is raised. */
  readonly raised: string;
  /** What its receiver should do. */
  readonly advice: string;
  /** Of the body; what is not named there does not come. */
  readonly schema: TSchema;
  readonly example: Body<Type>;
}

interface Body<Type extends MessageType> {
  readonly type: Type;
  /** UTC, six decimals. */
  readonly timestamp: string;
  readonly data: Static<(typeof EVENT_DATA)[Type]>;
}

/** A body of any type. */
export type WebhookExample = { [Type in MessageType]: Body<Type> }[MessageType];

const ENDPOINT = 'whe_k3m9x2p7q4ab';
const URL = 'https://example.com';
const PILL = {
  epoch: 'k7f3',
  cursor: '3-132',
  prev: '3-131',
  id: 'p-10',
  timestamp: '2026-11-20T01:02:03.004000Z',
  symbol: '7203.T',
  gross_spread_percent: 0.1261,
  market_state: 'open',
  confidence: 0.88,
  received_at: '2026-11-20T01:02:03.011000Z',
} as const;
const LATE_PILL = {
  epoch: 'k7f3',
  cursor: '0-91',
  prev: '0-90',
  id: 'p-12',
  timestamp: '2026-11-20T01:01:58.000000Z',
  symbol: '0700.HK',
  gross_spread_percent: 0.09,
  market_state: 'open',
  confidence: 0.7,
  received_at: '2026-11-20T01:02:03.017000Z',
  late: true,
} as const;

/** Every type of body that webhooks may carry: when, what to do, schema, example. */
export const EVENT_CATALOGUE: { readonly [Type in MessageType]: EventEntry<Type> } = {
  'pill.published': entry(
    'pill.published',
    'A pill was published that passes the filter of the endpoint.',
    'Act on it if it is young enough for you: compare received_at with your clock, and take no pill ' +
      'whose cursor is below one of its symbol that you had.',
    '2026-11-20T01:02:03.011000Z',
    PILL,
  ),
  'pills.published': entry(
    'pills.published',
    'Several such pills in one body of at most 20 kB: because they came faster than 50 a second, or ' +
      'waited while the endpoint did not answer, or because you asked for a replay (replayed is true ' +
      'then). Who asks for pill.published gets both.',
    'Handle each pill of data.pills as one of pill.published. Replayed ones are for your records, not ' +
      'to be traded on. timestamp is the receive time of the oldest.',
    '2026-11-20T01:02:03.011000Z',
    { pills: [PILL, LATE_PILL] },
  ),
  'endpoint.test': entry(
    'endpoint.test',
    'The endpoint was created, its URL was changed, or somebody asked for a test. It comes to every ' +
      'endpoint, whatever types it asked for.',
    'Answer 2xx with data.challenge in the body, within 15 s. Until then the endpoint is pending and ' +
      'gets nothing else.',
    '2026-11-20T01:00:00.000000Z',
    { endpoint: ENDPOINT, challenge: 'whc_5f0c9a7e2b1d4c685f0c9a7e2b1d4c68' },
  ),
  'quota.warning': entry(
    'quota.warning',
    '80, 95 and 100 % of the calls of a UTC day were used; each once a day. Webhooks cost no calls.',
    'Call less until resets_at, or move to a larger plan. At 100 % calls are refused with 429.',
    '2026-11-20T09:00:00.000000Z',
    { policy: 'daily', percent: 80, used: 8000, limit: 10000, resets_at: '2026-11-21T00:00:00Z' },
  ),
  'key.expiring': entry(
    'key.expiring',
    'A key ends in 7 days; once. Not for keys that live less than 14 days, are revoked, or are being ' +
      'rotated.',
    'Rotate the key: POST /api/keys/{id}/rotate.',
    '2026-11-20T01:00:00.000000Z',
    {
      ...{ key: 'key_p7w2m4x9c3de', hint: 'pil_live_…ab12', name: 'trading desk' },
      expires_at: '2026-11-27T00:30:00.25+00:00',
    },
  ),
  'subscription.changed': entry(
    'subscription.changed',
    'The plan was bought, changed, cancelled, resumed, paid after it was due, or has ended. A mere ' +
      'renewal is not told.',
    'Adapt to the limits of the plan: GET /api/account tells them. After a downgrade the oldest five ' +
      'endpoints go on.',
    '2026-11-20T09:00:00.250000Z',
    {
      ...{ tier: 'institutional', status: 'active', previous_tier: 'pro' },
      ...{ previous_status: 'active', period_end: '2026-12-20T09:00:00.000Z' },
      cancel_at_period_end: false,
    },
  ),
  'payment.failed': entry(
    'payment.failed',
    'A payment was refused. Access stays full until access_ends_at, 7 days after the first failure.',
    'Pay, or renew the card at the billing provider.',
    '2026-11-20T09:00:00.250000Z',
    {
      ...{ tier: 'pro', days_left: 7, past_due_since: '2026-11-20T09:00:00.000Z' },
      access_ends_at: '2026-11-27T09:00:00.000Z',
    },
  ),
  'payment.reminder': entry(
    'payment.reminder',
    'A payment is still due: on each of the days 1 to 6 after the failure, once a day.',
    'Pay before access_ends_at: streams, webhooks and calls end then.',
    '2026-11-21T09:00:10.000000Z',
    {
      ...{ tier: 'pro', days_left: 6, past_due_since: '2026-11-20T09:00:00+00:00' },
      access_ends_at: '2026-11-27T09:00:00+00:00',
    },
  ),
  'endpoint.failing': entry(
    'endpoint.failing',
    'No delivery to an endpoint has succeeded since failing_since: at 50, 70 and 90 % of the 76 hours ' +
      'until it is disabled. It goes to your other endpoints, and by mail.',
    'Repair the receiver: last_status and last_reason say what is wrong. One success ends it.',
    '2026-11-21T15:00:00.000000Z',
    {
      ...{ endpoint: ENDPOINT, url: URL, failing_since: '2026-11-20T01:00:00.000Z', percent: 50 },
      ...{ disabled_at: '2026-11-23T05:00:00.000Z', last_status: 503, last_reason: 'status' },
    },
  ),
  'endpoint.disabled': entry(
    'endpoint.disabled',
    'An endpoint was disabled: after 76 hours without a success (failing), or at once because it ' +
      'answered 410 (gone). It goes to your other endpoints, and by mail.',
    'Repair the receiver and send {"status":"enabled"} with PATCH /api/webhooks/{id}: a new challenge ' +
      'comes. Once it is answered, make the call in recover: it sends what was given up.',
    '2026-11-23T05:00:00.000000Z',
    {
      ...{ endpoint: ENDPOINT, url: URL, reason: 'failing' },
      ...{ failing_since: '2026-11-20T01:00:00.000Z', last_status: null, last_reason: 'timeout' },
      recover: `POST /api/webhooks/${ENDPOINT}/recover`,
    },
  ),
};

function entry<Type extends MessageType>(
  type: Type,
  raised: string,
  advice: string,
  timestamp: string,
  data: Body<Type>['data'],
): EventEntry<Type> {
  const example = { type, timestamp, data };
  return { type, raised, advice, schema: bodySchema(type), example };
}
