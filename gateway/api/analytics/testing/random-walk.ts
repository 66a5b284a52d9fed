import { nowMicros } from '../../../../lib/timing/clock.ts';
import type { PillRecord } from '../../../../schemas/pill.ts';
import type { Micros } from '../../../../schemas/timestamp.ts';
import { makePill, type PillWriter } from '../../../../testing/pills.ts';
import type { LoggedPill } from './recompute.ts';

export function shuffle<T>(list: readonly T[], random: () => number): T[] {
  const mixed = [...list];
  for (let at = mixed.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
  }
  return mixed;
}

/** A random walk of the spread with jumps, gaps and state changes, about one pill per second. */
export function walk(
  symbol: string,
  since: Micros,
  seconds: number,
  random: () => number,
): PillRecord[] {
  const pills: PillRecord[] = [];
  let spread = 0.1;
  for (let second = 0; second < seconds; second += 1) {
    if (random() < 0.15) continue;
    // A gap of three minutes: longer than any state holds.
    if (second % 1_800 > 900 && second % 1_800 < 1_080) continue;
    spread = Math.max(0.001, spread + (random() - 0.5) * 0.004);
    const isJump = random() < 0.004;
    pills.push(
      makePill({
        id: `${symbol}-${second}`,
        symbol,
        confidence: Math.round(random() * 10_000) / 100,
        timestamp: since + second * 1_000_000 + Math.floor(random() * 900_000),
        gross_spread_percent: isJump ? spread * 5 : spread,
        market_state: second % 700 < 500 ? 'open' : 'halted',
      }),
    );
  }
  return pills;
}

/** Writes pills, 500 at a time, each with its own receive time. @returns the pills as logged */
export async function writeLog(
  writer: Pick<PillWriter, 'write'>,
  pills: readonly PillRecord[],
  backfillAgeUs: number,
): Promise<LoggedPill[]> {
  const logged: LoggedPill[] = [];
  for (let from = 0; from < pills.length; from += 500) {
    const received = nowMicros();
    const batch = pills
      .slice(from, from + 500)
      .map((pill, at) => ({ ...pill, received_at: received + at }));
    const acks = await writer.write(batch);
    for (const [at, pill] of batch.entries()) {
      logged.push({
        offset: acks[at]!.offset,
        symbol: pill.symbol,
        id: pill.id,
        timestamp: pill.timestamp,
        receivedAt: pill.received_at,
        spread: pill.gross_spread_percent,
        state: pill.market_state,
        confidence: pill.confidence,
        backfill: pill.received_at - pill.timestamp > backfillAgeUs,
      });
    }
  }
  return logged;
}
