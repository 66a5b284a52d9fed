import { Type } from 'typebox';
import { decimalSeconds } from '../../../lib/clickhouse/clickhouse-client.ts';
import { texts } from '../server/example.ts';
import { timeOf } from '../server/schemas.ts';
import type { Window } from '../server/time-range.ts';

// Parameters that several queries share.

export const WINDOW = {
  from: Type.Optional(timeOf('Start of the window, ISO 8601 in UTC')),
  to: Type.Optional(timeOf('End of the window, exclusive; now by default')),
} as const;

export const WindowSchema = Type.Object(
  texts({ from: '2026-11-20T00:00:00.000000Z', to: '2026-11-20T06:30:00.000000Z' }),
);

/** The window as arguments of a ClickHouse view; `windowParameters` has their values. */
export const WINDOW_ARGUMENTS =
  "since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')}";

/** Widens a window to whole steps. */
export function wholeSteps({ since, until }: Window, stepS: number): Window {
  const step = stepS * 1e6;
  return { since: Math.floor(since / step) * step, until: Math.ceil(until / step) * step };
}

export function windowParameters({ since, until }: Window) {
  return { since: decimalSeconds(since), until: decimalSeconds(until) };
}
