import type { GeneratorState } from '../../../lib/signal/generator.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { API_VERSION } from '../../http/problems.ts';
import { CLOSE_CODES } from '../contract/close-codes.ts';
import { ERROR_CODES, type ErrorName } from '../contract/error-codes.ts';
import type { NotRecovered } from '../contract/resume-reasons.ts';
import type { Mode } from './subscription.ts';

/** `id` of the client frame that is answered; absent when it had none. */
type FrameId = string | undefined;

/** The bounds that `welcome` tells, by the names they have there. */
export interface StreamLimits {
  readonly connections: number;
  readonly symbols: number;
  readonly frames_in_per_s: number;
  readonly frame_in_bytes: number;
  readonly queue_bytes: number;
  /** Older positions are not promised to be resumable. */
  readonly resume_max_age_s: number;
}

function frame(document: object): Buffer {
  return Buffer.from(JSON.stringify(document));
}

/**
 * `welcome`, the first frame: session, account and tier, epoch of the log, the process's clock,
 * the account's limits.
 */
export function welcomeFrame(welcome: {
  readonly session: string;
  readonly epoch: string;
  readonly now: Micros;
  readonly heartbeatMs: number;
  readonly member: { readonly accountId: string; readonly tier: string };
  readonly limits: StreamLimits;
}): Buffer {
  return frame({
    type: 'welcome',
    version: API_VERSION,
    session: welcome.session,
    account: welcome.member.accountId,
    tier: welcome.member.tier,
    epoch: welcome.epoch,
    time: formatTimestamp(welcome.now),
    heartbeat_ms: welcome.heartbeatMs,
    limits: welcome.limits,
  });
}

/**
 * `subscribed`, the answer to `subscribe`. `recovered`: null when no resume was asked for, false
 * with a `reason` when it cannot be had. `position` is where the hand-over begins.
 */
export function subscribedFrame(subscribed: {
  readonly id: FrameId;
  readonly accepted: readonly string[];
  readonly rejected: readonly { readonly symbol: string; readonly code: ErrorName }[];
  readonly never_seen: readonly string[];
  readonly mode: Mode;
  readonly recovered: boolean | null;
  readonly reason: string | null;
  /** The oldest position that memory holds everything after; beside `reason` alone. */
  readonly oldest?: string;
  readonly replaying: number;
  readonly position: string;
}): Buffer {
  return frame({ type: 'subscribed', ...subscribed });
}

/**
 * `gap`: pills that this connection did not get and will not get. `fill` is the REST call that has
 * them, `fill_free` that it costs no call.
 */
export function gapFrame(
  missed: {
    readonly symbol: string;
    readonly after: string | undefined;
    readonly until: string;
  },
  reason: NotRecovered,
  { path, isFree }: { readonly path: string; readonly isFree: boolean },
): Buffer {
  const { symbol, after = null, until } = missed;
  const fill = { fill: path, fill_free: isFree };
  return frame({ type: 'gap', symbols: [symbol], after, until, reason, ...fill });
}

/** `gap` of a symbol whose pills are held nowhere: nothing fills it. */
export function chaosGapFrame(symbol: string, after: string | null, until: string): Buffer {
  const reason: NotRecovered = 'chaos';
  const fill = { fill: null, fill_free: false };
  return frame({ type: 'gap', symbols: [symbol], after, until, reason, ...fill });
}

/** `live`: the hand-over is done, new pills follow. `replayed` is the count of pills in it. */
export function liveFrame(id: FrameId, replayed: number, position: string): Buffer {
  return frame({ type: 'live', id, replayed, position });
}

/**
 * `heartbeat`: a position that is true once the client has read so far, pills since the connection
 * began (sent, kept away by filters, left out of `latest`), what waits for it in bytes and ms.
 */
export function heartbeatFrame(heartbeat: {
  readonly now: Micros;
  readonly position: string;
  readonly sent: number;
  readonly filtered: number;
  readonly skipped: number;
  readonly queueBytes: number;
  readonly queueMs: number;
  readonly generator: ToldGenerator;
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

/** The generator in a heartbeat; `unknown` while the log is away. */
export type ToldGenerator = Omit<GeneratorState, 'state'> & {
  readonly state: GeneratorState['state'] | 'unknown';
};

/** What the log's state is told as. */
export interface LogStatus {
  readonly state: 'up' | 'down';
  readonly since: Micros;
}

/** `status`: the log went away or came back; the connection goes on. */
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

/**
 * `drain`: the process stops and closes the connection within `graceMs`; the client should wait
 * `reconnectAfterMs` before it connects again. `position` must be true of this connection.
 */
export function drainFrame(reconnectAfterMs: number, graceMs: number, position: string): Buffer {
  return frame({
    type: 'drain',
    reason: 'shutdown',
    grace_ms: graceMs,
    reconnect_after_ms: reconnectAfterMs,
    position,
  });
}

/**
 * `unsubscribed`: `symbols` are those whose subscription ended, `remaining` counts what is left,
 * `*` as one.
 */
export function unsubscribedFrame(
  id: FrameId,
  symbols: readonly string[],
  remaining: number,
): Buffer {
  return frame({ type: 'unsubscribed', id, symbols, remaining });
}

/** `pong`: gives the number `t` of the `ping` back, with the process's clock. */
export function pongFrame(id: FrameId, t: number | undefined, now: Micros): Buffer {
  return frame({ type: 'pong', id, t, time: formatTimestamp(now) });
}

/**
 * `error`: what was wrong, and whether the connection ends by it; those whose code closes say with
 * which close code. @param more further fields, as the code needs them
 */
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
