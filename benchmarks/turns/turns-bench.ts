import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { newId } from '../../domain/access/id.ts';
import { addLiftedAccount } from '../access/lifted-account.ts';
import { inRounds, isOnTime, LATE_NOTE, noteOf } from '../harness/cells.ts';
import { percentileColumns, table, verdict } from '../harness/columns.ts';
import { createLatencies } from '../harness/histogram.ts';
import { monotonicMicros, plannedMicros, runOpenLoop } from '../harness/open-loop.ts';
import { compareRounds, median } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { startWorker } from '../harness/worker.ts';
import { type Endpoint, sendChange } from './change.ts';
import type { Changes } from './changes-process.ts';

const FLAGS = {
  parallel: flag.whole('changes of one account in flight', 1, 5_000, 400),
  accounts: flag.whole('other accounts', 1, 100, 8),
  perS: flag.whole('changes a second of the others together, open loop', 1, 1_000, 20),
  seconds: flag.whole('length of each run', 1, 3_600, 15),
  rounds: flag.whole('rounds of a quiet and a busy run', 1, 100, 5),
};
type Options = OptionsOf<typeof FLAGS>;
type Database = ReturnType<Stage['openDatabase']>;

/** p99 of the others, busy against quiet. */
const RATIO_MAX = 2;
const HEAD_START_MICROS = 20_000;
/** Until the changes are all in flight. */
const SETTLE_MS = 1_000;
const KINDS = ['quiet', 'busy'] as const;

/** What many changes of one account at once cost the changes of other accounts. */
export const TURNS: Scenario<Options> = {
  name: 'turns',
  description: 'Changes of other accounts while one account sends hundreds at once.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: Options): Promise<Report> {
  const { parallel, accounts, rounds } = options;
  const { namespace } = await stage.addNamespace('turns');
  const db = stage.openDatabase(namespace);
  const { port } = await stage.start('api', namespace);
  const dispatcher = new Agent({ connections: 50 });
  stage.onStop(() => dispatcher.close());
  const add = () => addEndpoint(stage, db, port);
  const noisy = await add();
  const others: Endpoint[] = [];
  for (let n = 0; n < accounts; n += 1) others.push(await add());
  const worker = startWorker('turns/changes-process', { nice: 19 });
  stage.onStop(worker.stop);
  const order = (changes: Changes) => worker.ask<Readonly<Record<number, number>>>(changes);
  const send = (n: number) => sendChange(request, dispatcher, others[n % others.length]!);

  await runChanges(options, send);
  const cells = await inRounds(KINDS, rounds, async (kind, round) => {
    stage.say(`round ${round}: ${kind}`);
    if (kind === 'quiet') return { kind, ...(await runChanges(options, send)), statuses: {} };
    await order({ begin: { endpoint: noisy, parallel } });
    await sleep(SETTLE_MS);
    const run = await runChanges(options, send);
    return { kind, ...run, statuses: await order({}) };
  });
  return reportOf(options, cells);
}

/** Adds an account with an endpoint as rows; nothing is posted to it. */
async function addEndpoint(stage: Stage, db: Database, port: number): Promise<Endpoint> {
  const account = await addLiftedAccount(db, 'institutional', stage.pepper, 'webhooks:write');
  const id = newId('whe');
  const row = {
    ...{ id, account_id: account.id, url: 'https://example.com/hook', challenge: newId('chl') },
    ...{ event_types: ['quota.warning'], rate_per_s: 100, max_age_s: 3_600 },
  };
  await db.insertInto('webhook_endpoints').values(row).execute();
  return { port, id, key: account.key };
}

/** Sends changes in an open loop, timed from the planned send, in µs. */
async function runChanges({ perS, seconds }: Options, send: (n: number) => Promise<number>) {
  const latencies = createLatencies();
  const startMicros = monotonicMicros() + HEAD_START_MICROS;
  const schedule = { startMicros, perS, pills: perS * seconds };
  const answers: Promise<void>[] = [];
  let failed = 0;
  const sendOne = async (n: number) => {
    const status = await send(n).catch(() => 0);
    latencies.record(monotonicMicros() - plannedMicros(schedule, n));
    if (status !== 200) failed += 1;
  };
  const lateness = await runOpenLoop(schedule, (n) => void answers.push(sendOne(n)));
  await Promise.all(answers);
  return { latency: latencies.percentiles(), lateness, failed };
}

interface Cell extends Awaited<ReturnType<typeof runChanges>> {
  readonly kind: (typeof KINDS)[number];
  readonly round: number;
  /** Answers to the account that sends many, by status. */
  readonly statuses: Readonly<Record<number, number>>;
}

function reportOf(options: Options, cells: readonly Cell[]): Report {
  const of = (wanted: Cell['kind']) => cells.filter(({ kind }) => kind === wanted);
  const { ratio, ratioMin, ratioMax } = compareRounds(
    of('busy'),
    of('quiet'),
    ({ latency }) => latency.p99,
  );
  const isValid = cells.every(({ lateness, failed }) => isOnTime(lateness) && failed === 0);
  const { parallel, accounts, perS, seconds } = options;
  const ratios = [ratio, ratioMin, ratioMax].map((one) => one.toFixed(2));
  const p99 = (kind: Cell['kind']) => median(of(kind).map(({ latency }) => latency.p99));
  return {
    figures: { ...options, cells, ratioOfP99: { ratio, ratioMin, ratioMax } },
    lines: [
      `${perS} changes/s of ${accounts} accounts for ${seconds} s, ms; busy: ${parallel} of another in flight`,
      '',
      ...table(cells, [
        ['run', ({ kind }) => kind],
        ['round', ({ round }) => round],
        ...percentileColumns<Cell>(({ latency }) => latency, ['p50', 'p99', 'max']),
        ['failed', ({ failed }) => failed],
        ['of the one', ({ statuses }) => JSON.stringify(statuses).replaceAll('"', '')],
        ['note', ({ lateness }) => noteOf(isOnTime(lateness) ? '' : LATE_NOTE)],
      ]),
      '',
      `p99 busy ÷ quiet: ${ratios[0]} (${ratios[1]} to ${ratios[2]}), ≤ ${RATIO_MAX}: ` +
        `${verdict(ratio <= RATIO_MAX)}; p99 ${p99('quiet') / 1_000} and ${p99('busy') / 1_000} ms`,
    ],
    ratios: [{ name: 'quiet ÷ busy (p99)', ratio: 1 / ratio, valid: isValid }],
    isProof: isValid,
  };
}
