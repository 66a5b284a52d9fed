import { Type } from 'typebox';
import { OUTCOMES } from '../../../lib/webhooks/attempts.ts';
import { DELIVERY_STATUSES } from '../../../lib/webhooks/deliveries.ts';
import { MaybeTime, STRICT, Time } from '../account/schemas.ts';
import { orNull } from '../or-null.ts';
import { EndpointId } from './schemas.ts';

export const MessageId = Type.String({
  pattern: '^[A-Za-z0-9_.:~-]{1,100}$',
  description: '`webhook-id` of a message',
});
export const messageParams = Type.Object({ id: EndpointId, message_id: MessageId }, STRICT);

const Count = Type.Integer({ minimum: 0 });
export const Next = orNull(Type.String({ description: '`before` of the next page' }));

export const DeliveryBody = Type.Object({
  message_id: Type.String(),
  event_type: Type.String(),
  pills: Count,
  occurred_at: Type.String({ description: '`max_age_s` counts from here; sent again: from then' }),
  status: Type.Enum([...DELIVERY_STATUSES]),
  attempts: Count,
  next_at: orNull(Type.String({ description: 'It is attempted from then on; null: not any more' })),
  last_status: orNull(Type.Integer({ description: 'HTTP status of the last attempt' })),
  last_reason: orNull(Type.String()),
  created_at: Time,
  settled_at: MaybeTime,
});
export const DELIVERY_EXAMPLE = {
  message_id: 'msg_k7f3_3-132',
  event_type: 'pill.published',
  pills: 1,
  occurred_at: '2026-11-20T01:02:03.011Z',
  status: 'failed',
  attempts: 10,
  next_at: null,
  last_status: 503,
  last_reason: 'status',
  created_at: '2026-11-20T01:02:04.100Z',
  settled_at: '2026-11-23T05:02:04.000Z',
};

export const AttemptBody = Type.Object({
  at: Time,
  message_id: Type.String(),
  event_type: Type.String(),
  pills: Count,
  attempt: Type.Integer({ minimum: 1, description: 'Which one at this message' }),
  outcome: Type.Enum([...OUTCOMES]),
  status: orNull(Type.Integer({ description: 'HTTP status; null: none came' })),
  reason: orNull(Type.String({ description: 'What was wrong, one word' })),
  detail: orNull(Type.String({ description: 'What was wrong, and what to do' })),
  latency_ms: Type.Number({ description: 'From the begin to the end of the answer' }),
  since_received_ms: orNull(
    Type.Number({ description: 'From the receive time of its oldest pill to the begin' }),
  ),
  answer: Type.String({ description: 'The first 1,024 bytes of it' }),
});
export const ATTEMPT_EXAMPLE = {
  at: '2026-11-20T01:02:03.041000Z',
  message_id: 'msg_k7f3_3-132',
  event_type: 'pill.published',
  pills: 1,
  attempt: 1,
  outcome: 'retry',
  status: 503,
  reason: 'status',
  detail: 'The answer was 503, not 2xx.',
  latency_ms: 18.402,
  since_received_ms: 30.1,
  answer: 'try later',
};
