import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { benchSymbols, makePill, writePills } from '../harness/bench-pills.ts';
import { verdict } from '../harness/columns.ts';
import type { Report } from '../harness/results.ts';
import { onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import {
  HTTP_FLAGS,
  type HttpOptions,
  measureTargets,
  startLoadClient,
} from '../http-load/targets.ts';
import { addLiftedAccount, countCalls } from './lifted-account.ts';

const TARGETS = ['bare', 'pro', 'institutional'] as const;
type Name = (typeof TARGETS)[number];

/** Requests a second relative to the bare route, and latency in µs. */
const RATIO_MIN = 0.6;
const P99_MAX_MICROS = 5_000;
const VISIBLE_MAX_MS = 30_000;
/** Calls without a daily limit are counted afterwards, four times a second. */
const COUNTED_AFTER_MS = 1_000;

/**
 * The cost of key, quota and limits for a read: requests a second against the same route without
 * them, and latency at half of that rate.
 */
export const ACCESS: Scenario<HttpOptions> = {
  name: 'access',
  description: 'What key, quota and limits cost a read, against the same route without them.',
  flags: HTTP_FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: HttpOptions): Promise<Report> {
  const { bench, db, accounts, symbols } = await openBench(stage, options);
  const { figures, lines, isProof } = await measureTargets<Name>(bench, options, stage.say, {
    unit: 'requests',
    halfOf: 'the rate that each reached',
    openPerS: (name, summaries) => summaries.find(({ target }) => target === name)!.perS / 2,
    goalOf: ({ target, ratio }) =>
      target === 'bare' ? '' : `≥ ${RATIO_MIN} × bare: ${verdict(ratio >= RATIO_MIN)}`,
    p99MaxMicros: P99_MAX_MICROS,
  });
  const { runs, summaries } = figures;
  // A ratio to the bare route means nothing unless every call was counted.
  await sleep(COUNTED_AFTER_MS);
  for (const tier of ['pro', 'institutional'] as const) {
    const own = runs.filter(({ target }) => target === tier);
    const calls = own.reduce((sum, { load }) => sum + load.ok, 0);
    const counted = await countCalls(db, accounts[tier].id);
    if (counted < calls) throw new Error(`${tier}: ${calls} calls, but ${counted} were counted.`);
  }
  const head = `GET /api/pills/latest?symbol= over ${symbols.length} symbols`;
  return {
    figures,
    lines: [`${head}; client and servers share the cores`, '', ...lines],
    ratios: summaries.slice(1).map(({ target, ratio, failed }) => {
      return { name: `${target} ÷ bare`, ratio, valid: failed + summaries[0]!.failed === 0 };
    }),
    isProof,
  };
}

/** Starts the API and its bare reference on the same pills, and makes accounts and keys. */
async function openBench(stage: Stage, { connections }: HttpOptions) {
  const log = await stage.addNamespace('bench');
  const { namespace } = log;
  const db = stage.openDatabase(namespace);
  const latest = await stage.start('latest', namespace);
  const api = await stage.start('api', namespace);
  const bare = await stage.start('api', namespace, { entry: 'access/bare-main.js' });
  const symbols = benchSymbols();
  await writePills(log, symbols.length, (n) => makePill(`access-${n}`, symbols[n]!, n));
  // Both processes read one topic: the first call with a key shows that the API has the pills too.
  const isVisible = async (symbol: string) =>
    (await fetch(`http://127.0.0.1:${bare.port}/api/pills/latest?symbol=${symbol}`)).ok;
  const areVisible = async () => (await Promise.all(symbols.map(isVisible))).every(Boolean);
  await waitUntil('the pills in view', areVisible, { timeoutMs: VISIBLE_MAX_MS });
  // The latest processor is no longer needed, and would take CPU from the measured processes.
  await latest.stop();
  const accounts = {
    bare: null,
    pro: await addLiftedAccount(db, 'pro', stage.pepper),
    institutional: await addLiftedAccount(db, 'institutional', stage.pepper),
  };
  const client = startLoadClient();
  stage.onStop(client.stop);
  const targets = TARGETS.map((name) => ({
    name,
    ...{ pid: name === 'bare' ? bare.pid : api.pid, port: name === 'bare' ? bare.port : api.port },
    connections,
    perRequest: 1,
    requests: () => ({ kind: 'read', symbols, key: accounts[name]?.key ?? null }) as const,
  }));
  const enginePid = stage.engines.pids().postgres;
  const bench = { targets, reference: 'bare', client, engine: 'postgres', enginePid } as const;
  return { bench, db, accounts, symbols };
}
