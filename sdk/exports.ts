/** The public interface, except `createClient`, which differs between Node and browsers. */
export { type Auth, bearerTokens, type OutgoingRequest } from './auth/auth.ts';
export type { Client, ClientOptions } from './client.ts';
export { PilloleError, type PilloleErrorFields, type Problem, type Retry } from './error.ts';
export type { HistoryRange } from './rest/history-range.ts';
export type * from './rest/responses.ts';
export { REST_LIMITS } from './rest/rest-client.ts';
export type { Usable } from './rest/usable.ts';
export type {
  MissingVerdict,
  PublishedVerdict,
  Verdict,
  VerdictList,
  VerdictPill,
  VerdictReason,
  Verdicts,
} from './rest/verdict-types.ts';
export type { WebSocketClass, WebSocketLike } from './stream/client-socket.ts';
export type {
  Drain,
  Heartbeat,
  Quiet,
  StatusFrame,
  StreamFilter,
  StreamMode,
} from './stream/stream-frames.ts';
export {
  type GapItem,
  type Opened,
  type PillItem,
  type Reconnecting,
  type Resume,
  type SnapshotItem,
  STREAM_LIMITS,
  type Stream,
  type StreamEvents,
  type StreamItem,
  type StreamOptions,
} from './stream/stream-types.ts';
export {
  challengeAnswer,
  type UnknownWebhookEvent,
  type VerifyWebhookOptions,
  verifyWebhook,
  type WebhookHeaders,
  type WebhookVerificationCode,
  WebhookVerificationError,
} from './webhooks/verify-webhook.ts';
export type * from './webhooks/webhook-events.ts';
