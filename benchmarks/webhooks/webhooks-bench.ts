import { inRounds } from '../harness/cells.ts';
import { fixed, ms } from '../harness/columns.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { type DrainRun, measureDrain } from './drain.ts';
import { isWhole, postPills, type WebhookRun } from './webhook-run.ts';
import { openWebhookStage, type WebhookStage } from './webhook-stage.ts';
import { type Figures, isSustained, lines, plotOf, ratiosOf } from './webhooks-report.ts';

const PARTS = ['latency', 'fan', 'slow-neighbour', 'drain'] as const;

const FLAGS = {
  scenarios: flag.some(`of ${PARTS.join(', ')}`, PARTS),
  seconds: flag.whole('length of each run', 1, 300, 30),
  warmUp: flag.whole('seconds of load before, not counted', 0, 300, 15),
  fanRates: flag.rising('pills a second', 1, 1_000, [10, 25, 50, 100, 200]),
  endpoints: flag.whole('of fan and slow-neighbour', 2, 200, 50),
  rounds: flag.whole('of slow-neighbour', 1, 20, 3),
  outageSeconds: flag.whole('of drain', 1, 300, 30),
  drainMaxSeconds: flag.whole('until nothing waits, at most', 1, 3_600, 420),
};
type Options = OptionsOf<typeof FLAGS>;

const LATENCY_PER_S = 200;
const NEIGHBOUR_PER_S = 10;
const DRAIN_PER_S = 100;
const DRAIN_ENDPOINTS = [1, 10];

export const WEBHOOKS: Scenario<Options> = {
  name: 'webhooks',
  description:
    'From ingest to a receiver: latency, fan, a hanging neighbour, the drain after an outage.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: Options): Promise<Report> {
  const webhooks = await openWebhookStage(stage);
  const parts = new Set(options.scenarios);
  const figures: Figures = {
    seconds: options.seconds,
    latency: parts.has('latency') ? [await measureLatency(webhooks, options)] : [],
    fan: parts.has('fan') ? await measureFan(webhooks, options) : [],
    neighbours: parts.has('slow-neighbour') ? await measureNeighbours(webhooks, options) : [],
    drains: parts.has('drain') ? await measureDrains(webhooks, options) : [],
  };
  const { latency, fan, neighbours, drains } = figures;
  const judged = [...latency, ...fan, ...neighbours];
  return {
    figures,
    lines: lines(figures),
    ratios: ratiosOf(figures),
    ...plotOf(figures),
    isProof:
      judged.every((run) => run.valid && isWhole(run)) &&
      drains.every(({ run }) => run.valid && run.lost + run.renamed + run.forged === 0),
  };
}

/** Makes new endpoints, and opens connections and compiles code before anything is counted. */
async function makeWarmEndpoints(
  webhooks: WebhookStage,
  load: { readonly perS: number; readonly endpoints: number },
  seconds: number,
): Promise<void> {
  const { perS, endpoints } = load;
  await webhooks.makeEndpoints(endpoints);
  if (seconds === 0) return;
  webhooks.say(`warm-up, not counted: ${perS} pills/s for ${seconds} s, endpoints: ${endpoints}`);
  await postPills(webhooks, { ...load, seconds });
}

async function measureLatency(webhooks: WebhookStage, { seconds, warmUp }: Options) {
  const load = { perS: LATENCY_PER_S, endpoints: 1 };
  await makeWarmEndpoints(webhooks, load, warmUp);
  webhooks.say(`latency: ${load.perS} pills/s to 1 endpoint for ${seconds} s`);
  const { run } = await postPills(webhooks, { ...load, seconds });
  webhooks.say(`  ${lineOf(run)}`);
  return run;
}

/** At rising rates, until one is not sustained. */
async function measureFan(webhooks: WebhookStage, options: Options) {
  const { seconds, endpoints, fanRates, warmUp } = options;
  const runs: WebhookRun[] = [];
  await makeWarmEndpoints(webhooks, { perS: fanRates[0]!, endpoints }, warmUp);
  for (const perS of fanRates) {
    webhooks.say(`fan: ${perS} pills/s to ${endpoints} endpoints for ${seconds} s`);
    const { run } = await postPills(webhooks, { perS, seconds, endpoints });
    const rate = `${fixed(0, run.deliveriesPerS)} messages/s, ${fixed(0, run.pillsPerS)} pills/s`;
    webhooks.say(`  ${rate}, ${run.overdue} waited in PostgreSQL, ${lineOf(run)}`);
    runs.push(run);
    if (!isSustained(run)) break;
  }
  return runs;
}

/** Once healthy, once with the last endpoint hanging, in a different order each round. */
async function measureNeighbours(webhooks: WebhookStage, options: Options) {
  const { seconds, endpoints, rounds, warmUp } = options;
  const judged = endpoints - 1;
  await makeWarmEndpoints(webhooks, { perS: NEIGHBOUR_PER_S, endpoints }, warmUp);
  return inRounds([false, true], rounds, async (hangs, round) => {
    webhooks.say(`slow neighbour, round ${round}: ${hangs ? '1 hangs' : 'all healthy'}`);
    // A new endpoint each time: messages that waited in one run must not be delivered in the next.
    await webhooks.replaceEndpoint(judged);
    await webhooks.receiver({ respond: { how: 'hangs', endpoints: hangs ? [judged] : [] } });
    const load = { perS: NEIGHBOUR_PER_S, seconds, endpoints, judged };
    const { run } = await postPills(webhooks, load);
    webhooks.say(`  ${lineOf(run)}`);
    return { ...run, hangs };
  });
}

async function measureDrains(webhooks: WebhookStage, options: Options) {
  const { outageSeconds: outageS, drainMaxSeconds: maxS } = options;
  const runs: DrainRun[] = [];
  for (const endpoints of DRAIN_ENDPOINTS) {
    const load = `${DRAIN_PER_S} pills/s; endpoints: ${endpoints}`;
    webhooks.say(`drain: all fail for ${outageS} s at ${load}`);
    const drain = await measureDrain(webhooks, { perS: DRAIN_PER_S, outageS, endpoints, maxS });
    webhooks.say(`  nothing waits after ${fixed(1, drain.emptyS)} s (? is over ${maxS} s)`);
    runs.push(drain);
  }
  return runs;
}

function lineOf({ sinceAnswer, sincePlanned, lost, doubled, lateness, valid }: WebhookRun): string {
  return (
    `p99 ${ms(sinceAnswer.p99)} ms from the answer, ${ms(sincePlanned.p99)} from the plan; ` +
    `lost ${lost}, doubled ${doubled}; ${ms(lateness.p99)} ms late${valid ? '' : ': INVALID'}`
  );
}
