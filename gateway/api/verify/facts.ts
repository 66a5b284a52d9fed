import type { GeneratorState } from '../../../domain/market/quiet/generator-state.ts';
import type { Quiet } from '../../../domain/market/quiet/silence.ts';
import type { Pill } from '../../../schemas/pill.ts';
import type { Micros } from '../../../schemas/timestamp.ts';
import type { MarketFacts } from './market-facts.ts';
import type { Reason } from './reasons.ts';
import type { SpreadFigures } from './spread.ts';

/** The pill that a verdict is about. */
export interface SubjectPill extends Pill {
  readonly partition: number;
  readonly offset: number;
  readonly received_at: Micros;
  readonly backfill: boolean;
}

/** Everything that a verdict follows from: `judge` reads no clock and no other state. */
export interface Facts {
  readonly now: Micros;
  readonly symbol: string;
  /** The known symbol that was probably meant by one without a pill. */
  readonly meant: string | undefined;
  /** Parts that are unavailable, and pills that could not be searched. */
  readonly faults: readonly Reason[];
  /** Undefined if there is none. */
  readonly pill: SubjectPill | undefined;
  /** The newest pill of the symbol, if that is another one. */
  readonly newer: Pick<SubjectPill, 'partition' | 'offset'> | undefined;
  readonly market: MarketFacts;
  /** Median of the symbol's last intervals; undefined if it has none. */
  readonly cadenceMs: number | undefined;
  readonly maxAgeMs: number;
  readonly generator: GeneratorState;
  readonly quiet: Quiet | undefined;
  /** Undefined if earlier pills cannot be read, or if there is no pill. */
  readonly spread: SpreadFigures | undefined;
  /** Whether the comparison has all pills of the symbol, or a full window of them. */
  readonly isSpreadWhole: boolean;
}
