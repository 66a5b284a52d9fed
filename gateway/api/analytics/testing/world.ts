import { expect } from 'vitest';
import { nowMicros } from '../../../../lib/clock.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import { formatTimestamp, type Micros } from '../../../../schemas/timestamp.ts';
import {
  type Answer,
  openPlatform,
  type Platform,
  venueRulesFile,
} from '../../testing/platform.ts';
import { createRandom, log, shuffle, walk } from './market.ts';
import { type EffectivePill, effective } from './recompute.ts';

export const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31);
export const DAY_US = 86_400e6;
/** Five days are live, so that a track record can be had in a test. */
const BACKFILL_AGE_US = 5 * DAY_US;

export type Parameters = Readonly<Record<string, string | number>>;

/** A platform that has walks of some symbols, shuffled and with repeats, and what has effect. */
export interface World extends Omit<Platform, 'ask'> {
  readonly pills: readonly EffectivePill[];
  /** When the walks began, for two hours: on a whole hour of the day before yesterday. */
  readonly began: Micros;
  /** When the writing began and ended. */
  readonly writtenFrom: Micros;
  readonly writtenUntil: Micros;
  /** Asks `/api/analytics/<name>`; `from` and `to` may be µs. */
  ask(name: string, parameters: Parameters, headers?: Record<string, string>): Promise<Answer>;
  /** Writes further pills, all of them received now. */
  log(pills: readonly PillRecord[]): Promise<unknown>;
}

export async function openWorld(of: {
  readonly walks: readonly string[];
  /** Pills beside them. */
  readonly others?: readonly PillRecord[];
}): Promise<World> {
  const platform = await openPlatform({
    settings: { backfill_age_ms: BACKFILL_AGE_US / 1_000 },
    env: { VENUE_RULES: await venueRulesFile({ prefix: { 'COIN:': 'ALWAYS' } }) },
  });
  const random = createRandom(SEED);
  const began = (Math.floor(nowMicros() / 3_600e6) - 48) * 3_600e6;
  const walks = of.walks.flatMap((symbol) => walk(symbol, began, 7_200, random));
  const all = shuffle([...walks, ...(of.others ?? [])], random);
  const repeats = all.filter(() => random() < 0.05).map((pill) => ({ ...pill, confidence: 0.5 }));
  const writtenFrom = nowMicros();
  const fill = async () => {
    const logged = await log(platform, [...all, ...shuffle(repeats, random)], BACKFILL_AGE_US);
    const writtenUntil = nowMicros();
    await platform.stored();
    return { logged, writtenUntil };
  };
  const { logged, writtenUntil } = await fill().catch(async (error) => {
    await platform.close();
    throw error;
  });
  return {
    ...{ ...platform, began, writtenFrom, writtenUntil },
    // Offsets of different partitions: each symbol is in one.
    pills: effective(logged),
    log: (pills) => log(platform, pills, BACKFILL_AGE_US),
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

/** Numbers that are sums may differ in their last digits. */
export function near(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isInteger(value)) return expect.closeTo(value, 9);
  if (Array.isArray(value)) return value.map(near);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, near(of)]));
  }
  return value;
}
