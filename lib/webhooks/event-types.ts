/** What an endpoint may ask to be told of. `endpoint.test` comes to every endpoint. */
export const EVENT_TYPES = [
  'pill.published',
  'quota.warning',
  'key.expiring',
  'subscription.changed',
  'payment.failed',
  'payment.reminder',
  'endpoint.failing',
  'endpoint.disabled',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** `type` of a body: `pills.published` joins several pills; who asks for pills gets both. */
export type MessageType = EventType | 'pills.published' | 'endpoint.test';
