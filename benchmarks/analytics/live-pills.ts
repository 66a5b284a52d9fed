import { waitUntil } from '../../deploy/local/wait-until.ts';
import { makePill, type PillsLog, writePills } from '../harness/bench-pills.ts';
import { type Api, verify } from './questions.ts';

const LIVE_SYMBOLS = 50;
const LIVE_PILLS = 2_000;
const REACHED_MAX_MS = 30_000;

/**
 * Writes pills to the log under symbols that the filled table does not have: market verify judges
 * live pills, and answers `unknown` where no sink follows the log.
 */
export async function writeLivePills(log: PillsLog, api: Api) {
  const live = Array.from({ length: LIVE_PILLS }, (_, n) => {
    return { symbol: `LIVE.${n % LIVE_SYMBOLS}`, id: `live-${n}` };
  });
  await writePills(log, live.length, (n) => makePill(live[n]!.id, live[n]!.symbol, n));
  // The sink has stored all pills once the answer about the last pill is certain.
  const isReached = () => verify(api, live.at(-1)!);
  await waitUntil('the sink', isReached, { timeoutMs: REACHED_MAX_MS, intervalMs: 200 });
  return live;
}
