import { lateAfterMs } from '../../../../domain/market/cadence/cadence.ts';
import type { Overrides } from '../../../../domain/market/calendars/overrides.ts';
import { createVenueOf, NO_RULES } from '../../../../domain/market/calendars/venue-rules.ts';
import { generatorState } from '../../../../domain/market/quiet/generator-state.ts';
import { createMarkets } from '../../../../domain/market/quiet/markets.ts';
import { judgeSilence } from '../../../../domain/market/quiet/silence.ts';
import type { Facts, SubjectPill } from '../facts.ts';
import { marketFacts } from '../market-facts.ts';
import { spreadFigures } from '../spread.ts';
import { judge } from '../verdict.ts';

export const micros = (time: string) => Date.parse(time) * 1000;

/** A change to the example "good" of the contract. */
export interface Case {
  readonly now?: string;
  readonly pill?: Partial<Omit<SubjectPill, 'timestamp' | 'received_at'>> | null;
  /** Timestamp of the pill; 0.452 s before now by default. */
  readonly at?: string;
  readonly receivedAt?: string;
  readonly symbol?: string;
  /** Median ms between pills. */
  readonly cadenceMs?: number | undefined;
  /** Last receive time of any pill. */
  readonly generatorAt?: string | null;
  readonly spreads?: readonly number[];
  readonly isSpreadWhole?: boolean;
  readonly faults?: Facts['faults'];
  readonly newer?: Facts['newer'];
  readonly overrides?: Overrides;
  readonly rules?: Parameters<typeof createVenueOf>[0];
}

/** A thousand spreads around 0.118. */
export const USUAL = Array.from({ length: 1_000 }, (_, n) => 0.07 + (n / 999) * 0.096);
/** Markets without overrides: calendars take some milliseconds to build. */
export const MARKETS = createMarkets();
export const NOW = '2026-11-20T01:02:03.456Z';

export function factsOf(one: Case): Facts {
  const now = micros(one.now ?? NOW);
  const symbol = one.symbol ?? '7203.T';
  const timestamp = one.at === undefined ? now - 452_000 : micros(one.at);
  const received_at = one.receivedAt === undefined ? timestamp + 7_000 : micros(one.receivedAt);
  const pill: SubjectPill | undefined =
    one.pill === null
      ? undefined
      : {
          partition: 3,
          offset: 132,
          id: 'p-10',
          symbol,
          timestamp,
          received_at,
          gross_spread_percent: 0.1261,
          market_state: 'open',
          confidence: 88,
          backfill: false,
          ...one.pill,
        };
  const markets =
    one.overrides === undefined && one.rules === undefined
      ? MARKETS
      : createMarkets(one.overrides, createVenueOf(one.rules ?? NO_RULES));
  const market = marketFacts(markets, symbol, now / 1000, pill && pill.timestamp / 1000);
  const cadenceMs = 'cadenceMs' in one ? one.cadenceMs : 980;
  const maxAgeMs = lateAfterMs(cadenceMs);
  const generatorAt = one.generatorAt === undefined ? now - 36_000 : micros(one.generatorAt ?? '');
  const values = Float64Array.from(one.spreads ?? USUAL);
  return {
    now,
    symbol,
    pill,
    market,
    cadenceMs,
    maxAgeMs,
    faults: one.faults ?? [],
    newer: one.newer,
    generator: generatorState(
      {
        lastReceivedAt: one.generatorAt === null ? undefined : generatorAt,
        lateAfterMs: 5_000,
        isInSession: true,
      },
      now,
    ),
    quiet: judgeSilence({
      lastAtMs: pill && received_at / 1000,
      lateAfterMs: maxAgeMs,
      market: market.now,
      receivingSinceMs: undefined,
      nowMs: now / 1000,
    }).quiet,
    spread:
      pill === undefined || values.length === 0
        ? undefined
        : spreadFigures(values, pill.gross_spread_percent),
    isSpreadWhole: one.isSpreadWhole ?? true,
    meant: undefined,
  };
}

/** The judgement of a case, with the codes of its reasons. */
export const judged = (one: Case) => {
  const judgement = judge(factsOf(one));
  return { ...judgement, codes: judgement.reasons.map(({ code }) => code) };
};
