import { isKnownLabel } from '../../domain/market/market-state-labels.ts';
import { isBackfill } from '../../domain/order/time.ts';
import type { Pill } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import type { Intake } from './intake.ts';

/** What may surprise the sender of a valid pill, by code; the codes are contract. */
export const WARNINGS = {
  market_state_unknown: 'No verdict can compare the label with the calendar; the pill carries it.',
  very_old: 'The pill is backfill: streams and webhooks send it only where backfill is asked for.',
} as const;

/** Values of the header `Pill-Warning`, by the sum of the flags below. */
const HEADERS = [undefined, 'market_state_unknown', 'very_old', 'market_state_unknown, very_old'];

/** The warnings of some pills together, as a header; undefined, as a rule, if there is none. */
export function warningOf(
  pills: readonly Pill[],
  receivedAt: Micros,
  { settings }: Intake,
): string | undefined {
  let isUnknown = 0;
  let isOld = 0;
  for (const { market_state, timestamp } of pills) {
    if (!isKnownLabel(market_state)) isUnknown = 1;
    if (isBackfill(timestamp, receivedAt, settings.backfill_age_ms)) isOld = 2;
  }
  return HEADERS[isUnknown + isOld];
}
