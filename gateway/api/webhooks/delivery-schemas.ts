import { Type } from 'typebox';
import { OUTCOMES } from '../../../domain/webhooks/deliveries/attempt-rows.ts';
import { DELIVERY_STATUSES } from '../../../domain/webhooks/deliveries/stored-messages.ts';
import { ruled } from '../server/form.ts';
import { orNull, STRICT, Time } from '../server/schemas.ts';
import { EndpointId } from './schemas.ts';

export const MessageId = Type.String({
  pattern: ruled(
    '^[A-Za-z0-9_.:~-]{1,100}$',
    'malformed',
    'A webhook-id has 1 to 100 letters, digits or _ . : ~ -.',
  ),
  description: '`webhook-id` of the message',
});
export const messageParams = Type.Object({ id: EndpointId, message_id: MessageId }, STRICT);

const MESSAGE = Type.String({ examples: ['msg_k7f3_3-132'] });
const EVENT = Type.String({ examples: ['pill.published'] });
const PILLS = Type.Integer({ minimum: 0, examples: [1] });

/** The answer to a request that queues one message. */
export const Queued = Type.Object({ message_id: MESSAGE });

export const DeliveryBody = Type.Object({
  message_id: MESSAGE,
  event_type: EVENT,
  pills: PILLS,
  occurred_at: Type.String({
    description: 'Start of `max_age_s`; after a resend, the time of the resend',
    examples: ['2026-11-20T01:02:03.011000Z'],
  }),
  status: Type.Enum([...DELIVERY_STATUSES], { examples: ['failed'] }),
  attempts: Type.Integer({ minimum: 0, examples: [10] }),
  next_at: orNull(
    Type.String({ description: 'Earliest time of the next attempt; null = no further attempt' }),
  ),
  last_status: orNull(
    Type.Integer({ description: 'HTTP status of the last attempt', examples: [503] }),
  ),
  last_reason: orNull(Type.String({ examples: ['status'] })),
  created_at: Time,
  settled_at: orNull(Type.String({ examples: ['2026-11-23T05:02:04.000000Z'] })),
});

export const AttemptBody = Type.Object({
  at: Time,
  message_id: MESSAGE,
  event_type: EVENT,
  pills: PILLS,
  attempt: Type.Integer({
    minimum: 1,
    description: 'Number of the attempt for this message',
    examples: [1],
  }),
  outcome: Type.Enum([...OUTCOMES], { examples: ['retry'] }),
  status: orNull(Type.Integer({ description: 'HTTP status; null = no answer', examples: [503] })),
  reason: orNull(Type.String({ description: 'The fault in one word', examples: ['status'] })),
  detail: orNull(
    Type.String({
      description: 'The fault, and what to do',
      examples: ['The answer was 503, not 2xx.'],
    }),
  ),
  latency_ms: Type.Number({
    description: 'From the start of the attempt to the end of the answer',
    examples: [18.402],
  }),
  since_received_ms: orNull(
    Type.Number({
      description: 'From the receive time of the oldest pill to the start of the attempt',
      examples: [30.1],
    }),
  ),
  answer: Type.String({
    description: 'The first 1,024 bytes of the answer',
    examples: ['try later'],
  }),
});

export const MessageBody = Type.Object({
  message_id: MESSAGE,
  event_type: EVENT,
  pills: PILLS,
  body: Type.String({
    description: 'The posted body, which is what the signature covers',
    examples: ['{"type":"pill.published","data":{"symbol":"7203.T"}}'],
  }),
});

export const HealthBody = Type.Object({
  hour: Type.String({ description: 'Its start', examples: ['2026-11-20T01:00:00.000000Z'] }),
  delivered: Type.Integer({ minimum: 0, examples: [1_204] }),
  retried: Type.Integer({
    minimum: 0,
    description: 'Attempts that failed and are repeated',
    examples: [3],
  }),
  given_up: Type.Integer({
    minimum: 0,
    description: 'Messages given up, because the last attempt failed or they were too old',
    examples: [0],
  }),
  p50_ms: Type.Number({
    description: 'Latency of all attempts, exact within 1 %',
    examples: [18.4],
  }),
  p99_ms: Type.Number({ examples: [120.2] }),
});
