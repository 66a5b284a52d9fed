import { describeMachine, type Machine } from '../machine.ts';
import { type DrainRun, measureDrain } from './drain.ts';
import { isSustained, type NeighbourRun } from './goals.ts';
import { isWhole } from './report.ts';
import { runPills, type WebhookRun } from './run.ts';
import { buildWebhookStage, type Stage } from './stage.ts';

export const SCENARIOS = ['latency', 'fan', 'slow-neighbour', 'drain'] as const;
export type Scenario = (typeof SCENARIOS)[number];

export interface WebhooksOptions {
  readonly scenarios: readonly Scenario[];
  /** Length of each run. */
  readonly seconds: number;
  /** Load on new endpoints that is not counted; `drain` has none. */
  readonly warmUpSeconds: number;
  /** Pills a second of `fan`, rising. */
  readonly fanRates: readonly number[];
  /** Of `fan` and `slow-neighbour`. */
  readonly endpoints: number;
  /** Of `slow-neighbour`. */
  readonly rounds: number;
  readonly outageSeconds: number;
  readonly drainMaxSeconds: number;
  readonly say: (line: string) => void;
}

export interface WebhooksResult {
  readonly benchmark: 'webhooks';
  readonly at: string;
  readonly machine: Machine;
  readonly seconds: number;
  readonly latency: WebhookRun | null;
  readonly fan: readonly WebhookRun[];
  readonly neighbours: readonly NeighbourRun[];
  readonly drains: readonly DrainRun[];
}

const LATENCY_PER_S = 200;
const NEIGHBOUR_PER_S = 10;
const DRAIN_PER_S = 100;
const DRAIN_ENDPOINTS = [1, 10];

/** Measures the scenarios that are asked for; stops and removes all that it started. */
export async function measureWebhooks(options: WebhooksOptions): Promise<WebhooksResult> {
  const { say, seconds, scenarios } = options;
  const machine = describeMachine();
  const stops: (() => Promise<unknown> | unknown)[] = [];
  try {
    const stage = await buildWebhookStage(say, (stop) => stops.push(stop));
    const wants = (scenario: Scenario) => scenarios.includes(scenario);
    const latency = wants('latency') ? await measureLatency(stage, options) : null;
    const fan = wants('fan') ? await measureFan(stage, options) : [];
    const neighbours = wants('slow-neighbour') ? await measureNeighbours(stage, options) : [];
    const drains = wants('drain') ? await measureDrains(stage, options) : [];
    const at = new Date().toISOString();
    return { benchmark: 'webhooks', at, machine, seconds, latency, fan, neighbours, drains };
  } finally {
    for (const stop of stops.reverse()) {
      await Promise.resolve(stop()).catch((error: Error) => say(`not stopped: ${error.message}`));
    }
  }
}

/** Makes new endpoints; connections are opened and code is compiled before anything is counted. */
async function makeWarmEndpoints(
  stage: Stage,
  { perS, endpoints }: { readonly perS: number; readonly endpoints: number },
  { warmUpSeconds: seconds, say }: WebhooksOptions,
): Promise<void> {
  await stage.makeEndpoints(endpoints);
  if (seconds === 0) return;
  say(`warm-up, not counted: ${perS} pills/s for ${seconds} s, endpoints: ${endpoints}`);
  await runPills(stage, { perS, seconds, endpoints });
}

async function measureLatency(stage: Stage, options: WebhooksOptions) {
  const { seconds, say } = options;
  const cell = { perS: LATENCY_PER_S, endpoints: 1 };
  await makeWarmEndpoints(stage, cell, options);
  say(`latency: ${cell.perS} pills/s to 1 endpoint for ${seconds} s`);
  const { run } = await runPills(stage, { ...cell, seconds });
  say(`  ${lineOf(run)}`);
  return run;
}

/** At rising rates, until one is not sustained. */
async function measureFan(stage: Stage, options: WebhooksOptions) {
  const { seconds, endpoints, fanRates, say } = options;
  const cells: WebhookRun[] = [];
  await makeWarmEndpoints(stage, { perS: fanRates[0]!, endpoints }, options);
  for (const perS of fanRates) {
    say(`fan: ${perS} pills/s to ${endpoints} endpoints for ${seconds} s`);
    const { run } = await runPills(stage, { perS, seconds, endpoints });
    const rate = `${run.deliveriesPerS.toFixed(0)} messages/s, ${run.pillsPerS.toFixed(0)} pills/s`;
    say(`  ${rate}, ${run.overdue} waited in PostgreSQL, ${lineOf(run)}`);
    cells.push(run);
    if (!isSustained(run)) break;
  }
  return cells;
}

/** Once healthy, once with the last endpoint hanging, in another order each round. */
async function measureNeighbours(stage: Stage, options: WebhooksOptions): Promise<NeighbourRun[]> {
  const { seconds, endpoints, rounds, say } = options;
  const last = endpoints - 1;
  const cells: NeighbourRun[] = [];
  await makeWarmEndpoints(stage, { perS: NEIGHBOUR_PER_S, endpoints }, options);
  for (let round = 1; round <= rounds; round += 1) {
    for (const hangs of round % 2 === 1 ? [false, true] : [true, false]) {
      say(`slow neighbour, round ${round}: ${hangs ? '1 hangs' : 'all healthy'}, ${seconds} s`);
      // New each time: what waited for it in one run must not be delivered in the next.
      await stage.replaceEndpoint(last);
      await stage.receiver.answer('hangs', hangs ? [last] : []);
      const { run } = await runPills(stage, {
        ...{ perS: NEIGHBOUR_PER_S, seconds, endpoints, judged: last },
      });
      say(`  ${lineOf(run)}`);
      cells.push({ round, hangs, run });
    }
  }
  await stage.receiver.answer('accepts', []);
  return cells;
}

async function measureDrains(stage: Stage, options: WebhooksOptions): Promise<DrainRun[]> {
  const { outageSeconds: outageS, drainMaxSeconds: maxS, say } = options;
  const cells: DrainRun[] = [];
  for (const endpoints of DRAIN_ENDPOINTS) {
    say(`drain: all fail for ${outageS} s at ${DRAIN_PER_S} pills/s; endpoints: ${endpoints}`);
    const drain = await measureDrain(stage, { perS: DRAIN_PER_S, outageS, endpoints, maxS });
    const empty = drain.emptyS === null ? `not within ${maxS} s` : `${drain.emptyS.toFixed(1)} s`;
    say(`  nothing waits: ${empty}; 99 % after ${drain.mostS?.toFixed(1) ?? '?'} s`);
    cells.push(drain);
  }
  return cells;
}

function lineOf(run: WebhookRun): string {
  const { sinceAnswer, sincePlanned, lost, doubled, lateness, valid } = run;
  const [answer, planned, late] = [sinceAnswer.p99, sincePlanned.p99, lateness.p99].map((micros) =>
    (micros / 1_000).toFixed(2),
  );
  return (
    `p99 ${answer} ms from the answer, ${planned} from the plan; lost ${lost}, doubled ${doubled}; ` +
    `${late} ms late${valid ? '' : ': INVALID'}`
  );
}

/** Whether a result proves anything: nothing lost or doubled, signatures good, no pill sent too late. */
export function isProof({ latency, fan, neighbours, drains }: WebhooksResult): boolean {
  const runs = [
    ...(latency === null ? [] : [latency]),
    ...fan,
    ...neighbours.map(({ run }) => run),
  ];
  return (
    runs.every((run) => run.valid && isWhole(run)) &&
    drains.every(({ run }) => run.valid && run.lost + run.renamed + run.forged === 0)
  );
}
