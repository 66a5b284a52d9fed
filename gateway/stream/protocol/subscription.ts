import type { PillFilter } from '../../../schemas/pill-filter.ts';
import type { CheckedFrame } from './client-frame-schemas.ts';

/** `all`: every pill, or the connection ends; `latest`: a slow reader gets only the newest. */
export type Mode = NonNullable<CheckedFrame<'subscribe'>['mode']>;

/** A connection's subscription to one symbol, or to `*`. */
export interface Subscription {
  readonly mode: Mode;
  readonly backfill: boolean;
  readonly filter: PillFilter | undefined;
}

/** The name that stands for all symbols except test symbols. */
export const ALL_SYMBOLS = '*';

/** The symbol that exercises clients; see chaos/. */
export const CHAOS_SYMBOL = 'TEST:CHAOS';
