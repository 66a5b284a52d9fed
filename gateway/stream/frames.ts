import type { Micros } from '../../schemas/timestamp.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES, type ErrorName } from './error-codes.ts';
import type { Mode } from './subscription.ts';

/** Version of the protocol, in `welcome`. */
export const PROTOCOL_VERSION = '1.0';

/** `id` of the client frame that is answered; absent when it had none. */
type FrameId = string | undefined;

export interface StreamLimits {
  readonly connections: number;
  readonly symbols: number;
  readonly frames_in_per_s: number;
  readonly frame_in_bytes: number;
  readonly queue_bytes: number;
  /** 0: positions older than now cannot be resumed. */
  readonly resume_max_age_s: number;
}

export interface GeneratorState {
  readonly state: 'alive' | 'silent' | 'never';
  readonly last_received_at: string | null;
  readonly age_ms: number | null;
}

function frame(document: object): Buffer {
  return Buffer.from(JSON.stringify(document));
}

export function welcomeFrame(welcome: {
  readonly session: string;
  readonly epoch: string;
  readonly now: Micros;
  readonly heartbeatMs: number;
  readonly limits: StreamLimits;
}): Buffer {
  return frame({
    type: 'welcome',
    version: PROTOCOL_VERSION,
    session: welcome.session,
    account: null,
    tier: null,
    epoch: welcome.epoch,
    time: formatTimestamp(welcome.now),
    heartbeat_ms: welcome.heartbeatMs,
    limits: welcome.limits,
  });
}

export function subscribedFrame(subscribed: {
  readonly id: FrameId;
  readonly accepted: readonly string[];
  readonly rejected: readonly { readonly symbol: string; readonly code: ErrorName }[];
  readonly never_seen: readonly string[];
  readonly mode: Mode;
  readonly recovered: boolean | null;
  readonly reason: string | null;
  readonly replaying: number;
  readonly position: string;
}): Buffer {
  return frame({ type: 'subscribed', ...subscribed });
}

export function liveFrame(id: FrameId, replayed: number, position: string): Buffer {
  return frame({ type: 'live', id, replayed, position });
}

export function heartbeatFrame(heartbeat: {
  readonly now: Micros;
  readonly position: string;
  readonly sent: number;
  readonly filtered: number;
  readonly skipped: number;
  readonly queueBytes: number;
  readonly queueMs: number;
  readonly generator: GeneratorState;
}): Buffer {
  const { now, queueBytes, queueMs, generator, ...counts } = heartbeat;
  return frame({
    type: 'heartbeat',
    time: formatTimestamp(now),
    ...counts,
    queue_bytes: queueBytes,
    queue_ms: queueMs,
    generator,
  });
}

/** What the log's state is told as. */
export interface LogStatus {
  readonly state: 'up' | 'down';
  readonly since: Micros;
}

export function statusFrame(now: Micros, { state, since }: LogStatus): Buffer {
  return frame({
    type: 'status',
    time: formatTimestamp(now),
    component: 'log',
    state,
    code: state === 'down' ? 'log_unreachable' : 'log_reachable',
    since: formatTimestamp(since),
    until: null,
    message:
      state === 'down'
        ? 'New pills cannot arrive. Nothing is lost; they follow in order.'
        : 'New pills arrive again, in order.',
  });
}

export function drainFrame(reconnectAfterMs: number, graceMs: number, position: string): Buffer {
  return frame({
    type: 'drain',
    reason: 'shutdown',
    grace_ms: graceMs,
    reconnect_after_ms: reconnectAfterMs,
    position,
  });
}

export function unsubscribedFrame(
  id: FrameId,
  symbols: readonly string[],
  remaining: number,
): Buffer {
  return frame({ type: 'unsubscribed', id, symbols, remaining });
}

export function pongFrame(id: FrameId, t: number | undefined, now: Micros): Buffer {
  return frame({ type: 'pong', id, t, time: formatTimestamp(now) });
}

/** An `error`; those whose code closes say with which close code. */
export function errorFrame(
  code: ErrorName,
  message: string,
  more: { readonly id?: FrameId; readonly [field: string]: unknown } = {},
): Buffer {
  const { id, ...rest } = more;
  const { close } = ERROR_CODES[code] as { close?: keyof typeof CLOSE_CODES };
  const fatal = close !== undefined;
  const closing = fatal ? { fatal, close: CLOSE_CODES[close].code } : { fatal };
  return frame({ type: 'error', id, code, message, ...closing, ...rest });
}
