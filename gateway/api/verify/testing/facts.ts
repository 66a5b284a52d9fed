import type { Overrides } from '../../../../lib/calendar/overrides.ts';
import { createVenueOf, NO_RULES } from '../../../../lib/calendar/venue-rules.ts';
import { lateAfterMs } from '../../../../lib/signal/cadence.ts';
import { generatorState } from '../../../../lib/signal/generator.ts';
import { createMarkets } from '../../../../lib/signal/markets.ts';
import { judgeSilence } from '../../../../lib/signal/silence.ts';
import { marketFacts } from '../market.ts';
import { spreadFigures } from '../spread.ts';
import { type Facts, judge, type WeighedPill } from '../verdict.ts';

export const micros = (time: string) => Date.parse(time) * 1000;

/** The good answer of the contract, changed in one thing. */
export interface Case {
  readonly now?: string;
  readonly pill?: Partial<Omit<WeighedPill, 'timestamp' | 'received_at'>> | null;
  /** Of the pill; 0.452 s before now by default. */
  readonly at?: string;
  readonly receivedAt?: string;
  readonly symbol?: string;
  /** Median ms between pills. */
  readonly cadenceMs?: number | undefined;
  /** When the generator last sent anything. */
  readonly heardAt?: string | null;
  readonly spreads?: readonly number[];
  readonly isSpreadWhole?: boolean;
  readonly faults?: Facts['faults'];
  readonly newer?: Facts['newer'];
  readonly overrides?: Overrides;
  readonly rules?: Parameters<typeof createVenueOf>[0];
}

/** A thousand spreads around 0.118. */
export const USUAL = Array.from({ length: 1_000 }, (_, n) => 0.07 + (n / 999) * 0.096);
export const NOW = '2026-11-20T01:02:03.456Z';

export function factsOf(one: Case): Facts {
  const now = micros(one.now ?? NOW);
  const symbol = one.symbol ?? '7203.T';
  const timestamp = one.at === undefined ? now - 452_000 : micros(one.at);
  const received_at = one.receivedAt === undefined ? timestamp + 7_000 : micros(one.receivedAt);
  const pill: WeighedPill | undefined =
    one.pill === null
      ? undefined
      : {
          ...{ partition: 3, offset: 132, id: 'p-10', symbol, timestamp, received_at },
          ...{ gross_spread_percent: 0.1261, market_state: 'open', confidence: 0.88 },
          ...{ backfill: false, ...one.pill },
        };
  const markets = createMarkets(one.overrides, createVenueOf(one.rules ?? NO_RULES));
  const market = marketFacts(markets, symbol, now / 1000, pill && pill.timestamp / 1000);
  const cadenceMs = 'cadenceMs' in one ? one.cadenceMs : 980;
  const maxAgeMs = lateAfterMs(cadenceMs);
  const heardAt = one.heardAt === undefined ? now - 36_000 : micros(one.heardAt ?? '');
  const values = Float64Array.from(one.spreads ?? USUAL);
  return {
    ...{ now, symbol, pill, market, cadenceMs, maxAgeMs },
    faults: one.faults ?? [],
    newer: one.newer,
    generator: generatorState(
      {
        lastReceivedAt: one.heardAt === null ? undefined : heardAt,
        lateAfterMs: 5_000,
        isInSession: true,
      },
      now,
    ),
    quiet: judgeSilence({
      ...{ lastAtMs: pill && received_at / 1000, lateAfterMs: maxAgeMs, market: market.now },
      ...{ hearingSinceMs: undefined, nowMs: now / 1000 },
    }).quiet,
    spread:
      pill === undefined || values.length === 0
        ? undefined
        : spreadFigures(values, pill.gross_spread_percent),
    isSpreadWhole: one.isSpreadWhole ?? true,
  };
}

/** The judgement of a case, with the codes of its reasons. */
export const judged = (one: Case) => {
  const judgement = judge(factsOf(one));
  return { ...judgement, codes: judgement.reasons.map(({ code }) => code) };
};
