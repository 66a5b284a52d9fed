/** Every type of the public interface. */
export type * from './answers.ts';
export type { Client, ClientOptions } from './client.ts';
export type { PilloleErrorFields, Problem, Retry } from './error.ts';
export type {
  Drain,
  Heartbeat,
  Quiet,
  StatusFrame,
  StreamFilter,
  StreamMode,
} from './frames.ts';
export type { HistoryRange } from './history.ts';
export type { GapItem, PillItem, SnapshotItem, StreamItem } from './items.ts';
export type { Pill, SnapshotPill } from './pill.ts';
export type { Opened } from './session.ts';
export type { Reconnecting, Stream, StreamEvents, StreamOptions } from './stream.ts';
export type { Resume } from './subscribe.ts';
export type {
  MissingVerdict,
  PublishedVerdict,
  Usable,
  Verdict,
  VerdictList,
  VerdictPill,
  VerdictReason,
  Verdicts,
} from './verdict.ts';
export type { WebSocketClass, WebSocketLike } from './web-socket.ts';
export type {
  VerifyWebhookOptions,
  WebhookHeaders,
  WebhookVerificationCode,
} from './webhook.ts';
export type * from './webhook-events.ts';
