import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { ClickHouse } from '../../lib/clickhouse.ts';
import { nowMicros } from '../../lib/clock.ts';
import { type Surroundings, startBenchProcess } from '../bench-process.ts';
import { openPillSender } from '../pill-sender.ts';
import { askOpenLoop, type OpenLoop } from './open-loop.ts';
import { SINK } from './sink.ts';

/** `symbol`: may one act on it now; `recent id`, `old id`: on this pill, in memory or in the table. */
export const VERIFICATIONS = ['symbol', 'recent id', 'old id'] as const;

export interface VerifyRun extends OpenLoop {
  readonly about: (typeof VERIFICATIONS)[number];
  /** In the table. */
  readonly pills: number;
}

export interface VerifyLoad {
  readonly perS: number;
  readonly oldPerS: number;
  readonly seconds: number;
}

export interface Verifications {
  /**
   * Asks the API about each kind of subject, a second of each to warm up first.
   * @param pills in the table
   * @param load `oldPerS`: each is a statement, of which four run at a time
   */
  run(pills: number, load: VerifyLoad): Promise<VerifyRun[]>;
  close(): Promise<void>;
}

const LIVE_SYMBOLS = 50;
const LIVE_PILLS_EACH = 40;
const OLD_IDS = 2_000;
const REACHED_MAX_MS = 30_000;

/**
 * Opens a sink, and writes pills to the log for it, each under a symbol that the filled table does
 * not have: market verify weighs live pills, and says `unknown` where no sink follows.
 */
export async function openVerifications(
  around: Surroundings,
  { apiPort, key, clickhouse }: { apiPort: number; key: string; clickhouse: ClickHouse },
): Promise<Verifications> {
  const sink = await startBenchProcess(SINK, around);
  const agent = new Agent({ connections: 50 });
  const ask = async (parameters: Record<string, string>) => {
    const url = `http://127.0.0.1:${apiPort}/api/market/verify?${new URLSearchParams(parameters)}`;
    const options = { headers: { 'x-api-key': key }, dispatcher: agent };
    const { statusCode, body } = await request(url, options);
    const answer = (await body.json()) as { pill: object | null; reasons: { code: string }[] };
    const isSure = answer.reasons?.every(({ code }) => !code.endsWith('_unavailable')) === true;
    return statusCode === 200 && isSure && answer.pill !== null;
  };
  const live = await writeLivePills(around);
  return {
    async run(pills, load) {
      const old = await oldIds(clickhouse);
      const about: Record<VerifyRun['about'], (at: number) => Promise<boolean>> = {
        symbol: (at) => ask({ symbol: live[at % live.length]!.symbol }),
        'recent id': (at) => ask(live[(at * 7) % live.length]!),
        'old id': (at) => ask(old[at % old.length]!),
      };
      // The sink has them when the answer about the last one is sure.
      const until = performance.now() + REACHED_MAX_MS;
      while (!(await ask(live.at(-1)!)) && performance.now() < until) await sleep(200);
      const runs: VerifyRun[] = [];
      for (const kind of VERIFICATIONS) {
        const perS = kind === 'old id' ? load.oldPerS : load.perS;
        await askOpenLoop({ perS, seconds: 1 }, about[kind]);
        const run = await askOpenLoop({ perS, seconds: load.seconds }, about[kind]);
        runs.push({ about: kind, pills, ...run });
      }
      return runs;
    },
    async close() {
      await agent.close();
      await sink.stop();
    },
  };
}

async function writeLivePills({
  engines,
  namespace,
}: Surroundings): Promise<{ symbol: string; id: string }[]> {
  const sender = await openPillSender({ ...engines, namespace }, 5);
  try {
    const pills = Array.from({ length: LIVE_SYMBOLS * LIVE_PILLS_EACH }, (_, n) => ({
      ...{ id: `live-${n}`, symbol: `LIVE.${n % LIVE_SYMBOLS}`, timestamp: nowMicros() + n },
      ...{ gross_spread_percent: 0.1 + (n % 97) / 1_000, market_state: 'open', confidence: 90 },
    }));
    const { ok } = await sender.send(pills);
    if (ok < pills.length) throw new Error('The log did not take the pills.');
    return pills.map(({ symbol, id }) => ({ symbol, id }));
  } finally {
    await sender.close();
  }
}

/** Of all days, none that was asked for before. */
async function oldIds(clickhouse: ClickHouse): Promise<{ symbol: string; id: string }[]> {
  const answer = await clickhouse.query({
    query: `SELECT symbol, id FROM pills WHERE symbol LIKE 'BENCH.%'
            ORDER BY rand() LIMIT ${OLD_IDS} SETTINGS max_memory_usage = 0`,
    format: 'JSONEachRow',
  });
  return answer.json();
}
