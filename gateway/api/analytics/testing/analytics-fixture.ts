import { nowMicros } from '../../../../lib/timing/clock.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import { formatTimestamp, type Micros } from '../../../../schemas/timestamp.ts';
import { seededRandom } from '../../../../testing/seed.ts';
import {
  type Answer,
  openPlatform,
  type Platform,
  venueRulesFile,
} from '../../testing/api-platform.ts';
import { shuffle, walk, writeLog } from './random-walk.ts';
import { type EffectivePill, effective } from './recompute.ts';

export const DAY_US = 86_400e6;
/** Pills of five days are live, so that a test has a track record. */
const BACKFILL_AGE_US = 5 * DAY_US;

export type Parameters = Readonly<Record<string, string | number>>;

/** A platform with random walks of some symbols, shuffled and with repeats. */
export interface AnalyticsFixture extends Omit<Platform, 'ask'> {
  /** The pills with effect. */
  readonly pills: readonly EffectivePill[];
  /** Start of the walks, which take two hours: a full hour of the day before yesterday. */
  readonly began: Micros;
  /** When writing the pills began and ended. */
  readonly writtenFrom: Micros;
  readonly writtenUntil: Micros;
  /** Gets `/api/analytics/<name>`; `from` and `to` may be µs. */
  ask(name: string, parameters: Parameters, headers?: Record<string, string>): Promise<Answer>;
}

export async function openAnalyticsFixture(of: {
  readonly walks: readonly string[];
  /** Further pills. */
  readonly others?: readonly PillRecord[];
}): Promise<AnalyticsFixture> {
  const platform = await openPlatform({
    settings: { backfill_age_ms: BACKFILL_AGE_US / 1_000 },
    env: { VENUE_RULES: await venueRulesFile({ prefix: { 'COIN:': 'ALWAYS' } }) },
  });
  const random = seededRandom();
  const began = (Math.floor(nowMicros() / 3_600e6) - 48) * 3_600e6;
  const walks = of.walks.flatMap((symbol) => walk(symbol, began, 7_200, random));
  const all = shuffle([...walks, ...(of.others ?? [])], random);
  const repeats = all.filter(() => random() < 0.05).map((pill) => ({ ...pill, confidence: 50 }));
  const writtenFrom = nowMicros();
  const fill = async () => {
    const pills = [...all, ...shuffle(repeats, random)];
    const logged = await writeLog(platform, pills, BACKFILL_AGE_US);
    const writtenUntil = nowMicros();
    await platform.waitUntilStored();
    return { logged, writtenUntil };
  };
  const { logged, writtenUntil } = await fill().catch(async (error) => {
    await platform.close();
    throw error;
  });
  return {
    ...platform,
    began,
    writtenFrom,
    writtenUntil,
    // Offsets of several partitions may mix: each symbol is in one partition.
    pills: effective(logged),
    ask(name, parameters, headers = {}) {
      const query = new URLSearchParams();
      for (const [parameter, value] of Object.entries(parameters)) {
        const isTime = (parameter === 'from' || parameter === 'to') && typeof value === 'number';
        query.set(parameter, isTime ? formatTimestamp(value) : String(value));
      }
      return platform.ask(`/api/analytics/${name}?${query}`, { headers });
    },
  };
}

/** Values of pills, which are exact. */
const EXACT = new Set(['open', 'high', 'low', 'close', 'min', 'max', 'now', 'then']);

/** Decimals of figures by name; spreads have nine. */
const DECIMALS: Readonly<Record<string, number>> = { mean_confidence: 6, seconds: 6, z: 4 };

/**
 * Matches figures that are rounded to so many decimals. The last one may differ, since two ways to
 * compute a sum may round to either side.
 */
export function near(value: unknown, decimals = 9): unknown {
  if (typeof value === 'number') {
    return { asymmetricMatch: (other: unknown) => isNear(other, value, decimals), value };
  }
  if (Array.isArray(value)) return value.map((one) => near(one, decimals));
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value);
    return Object.fromEntries(
      members.map(([name, of]) => [
        name,
        typeof of === 'number' && EXACT.has(name) ? of : near(of, DECIMALS[name] ?? decimals),
      ]),
    );
  }
  return value;
}

function isNear(figure: unknown, value: number, decimals: number): boolean {
  if (typeof figure !== 'number' || Number(figure.toFixed(decimals)) !== figure) return false;
  return Math.abs(figure - value) < 1.01 * 10 ** -decimals;
}
