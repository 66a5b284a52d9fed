import { formatTimestamp, type Micros } from '../../../schemas/timestamp.ts';
import { CLOSE_CODES, type CloseName } from './close-codes.ts';
import { ERROR_CODES, type ErrorName } from './error-codes.ts';
import type { ResumeReason } from './resume-reasons.ts';
import type { ServerFrame, ServerFrameType } from './server-frame-schemas.ts';

/** Encodes a frame by the type that its schema describes; undefined fields are left out. */
export function encodeFrame<T extends ServerFrameType>(
  frame: { readonly [K in keyof ServerFrame<T>]: ServerFrame<T>[K] | undefined } & {
    readonly type: T;
  },
): Buffer {
  return Buffer.from(JSON.stringify(frame));
}

/**
 * `gap`: pills that this connection has missed for good.
 * @param fill the REST call that returns them, and whether it is free; undefined if none does
 */
export function gapFrame(
  missed: {
    readonly symbol: string;
    readonly after: string | undefined;
    readonly until: string;
  },
  reason: ResumeReason,
  fill: { readonly path: string; readonly isFree: boolean } | undefined,
): Buffer {
  const { symbol, after = null, until } = missed;
  return encodeFrame({
    type: 'gap',
    symbols: [symbol],
    after,
    until,
    reason,
    fill: fill?.path ?? null,
    fill_free: fill?.isFree ?? false,
  });
}

/** Whether the log can be reached, and since when. */
export interface LogStatus {
  readonly state: 'up' | 'down';
  readonly since: Micros;
}

/** `status`: the log became unreachable or reachable; the connection stays open. */
export function statusFrame(now: Micros, { state, since }: LogStatus): Buffer {
  return encodeFrame({
    type: 'status',
    time: formatTimestamp(now),
    component: 'log',
    state,
    code: state === 'down' ? 'log_unreachable' : 'log_reachable',
    since: formatTimestamp(since),
    until: null,
    message:
      state === 'down'
        ? 'New pills cannot arrive. None is lost; they follow in order.'
        : 'New pills arrive again, in order.',
  });
}

/**
 * `error`: the close code of the catalogue decides whether it ends the connection.
 * @param more further fields, as the code requires
 */
export function errorFrame(
  code: ErrorName,
  message: string,
  more: { readonly id?: string | undefined; readonly [field: string]: unknown } = {},
): Buffer {
  const { id, ...rest } = more;
  const { close } = ERROR_CODES[code] as { close?: CloseName };
  const closing =
    close === undefined ? { fatal: false } : { fatal: true, close: CLOSE_CODES[close].code };
  return Buffer.from(JSON.stringify({ type: 'error', id, code, message, ...closing, ...rest }));
}
