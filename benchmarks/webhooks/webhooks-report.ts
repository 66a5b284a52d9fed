import { noteOf } from '../harness/cells.ts';
import { type Column, fixed, ms, percentileColumns, table, verdict } from '../harness/columns.ts';
import type { Percentiles } from '../harness/histogram.ts';
import { median } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import type { DrainRun } from './drain.ts';
import { faultOf, isWhole, type WebhookRun } from './webhook-run.ts';

/** Empty for the parts that were not measured; `latency` is one run. */
export interface Figures {
  readonly seconds: number;
  readonly latency: readonly WebhookRun[];
  readonly fan: readonly WebhookRun[];
  readonly neighbours: readonly NeighbourRun[];
  readonly drains: readonly DrainRun[];
}

/** A run of `slow-neighbour`; the last endpoint is never judged. */
type NeighbourRun = WebhookRun & { readonly round: number; readonly hangs: boolean };

const GOALS = {
  /** `latency`, from the response of ingest. */
  latencyP99MaxMicros: 100_000,
  /** `fan`: a slower run is not sustained. */
  fanP99MaxMicros: 1_000_000,
  /** p99 of the others with a hanging neighbour ÷ without. */
  neighbourRatioMax: 1.1,
} as const;

/** Whether endpoints keep up: p99 within a second, nothing overdue in PostgreSQL, nothing lost. */
export function isSustained(run: Pick<WebhookRun, 'overdue' | 'lost' | 'sincePlanned'>): boolean {
  const { overdue, lost, sincePlanned } = run;
  return overdue === 0 && lost === 0 && sincePlanned.p99 <= GOALS.fanP99MaxMicros;
}

/** The sustained run with the most messages a second; undefined where none is valid. */
export function bestOf(fan: readonly WebhookRun[]): WebhookRun | undefined {
  return fan
    .filter((run) => run.valid && isSustained(run))
    .sort((one, other) => other.deliveriesPerS - one.deliveriesPerS)[0];
}

/** Medians of the rounds, p99 in µs from the response of ingest, of the endpoints that never hang. */
export function summariseNeighbours(runs: readonly NeighbourRun[]) {
  const p99 = (hangs: boolean) =>
    median(runs.filter((run) => run.hangs === hangs).map(({ sinceAnswer }) => sinceAnswer.p99));
  const [healthyP99, hangingP99] = [p99(false), p99(true)];
  const valid = runs.every((run) => run.valid && isWhole(run));
  return { healthyP99, hangingP99, ratio: hangingP99 / healthyP99, valid };
}

/** A webhook against ingest's own response, and the others with and without a hanging neighbour. */
export function ratiosOf({ latency, neighbours }: Figures): Report['ratios'] {
  const ratios = latency.map((run) => ({
    name: 'POST → ok ÷ POST → webhook, p50',
    ratio: run.acknowledged.p50 / run.sincePlanned.p50,
    valid: run.valid && isWhole(run),
  }));
  if (neighbours.length === 0) return ratios;
  const { ratio, valid } = summariseNeighbours(neighbours);
  return [...ratios, { name: 'all healthy ÷ 1 hangs, p99', ratio: 1 / ratio, valid }];
}

export function plotOf({ latency: [run] }: Figures): Pick<Report, 'plot'> {
  if (run === undefined) return {};
  const seriesOf = (from: string, { encoded }: { encoded: string }, seconds = run.timeline) => {
    return { name: `from the ${from}${run.valid ? '' : ' (INVALID)'}`, encoded, seconds };
  };
  const title = `Webhooks, ${run.perS} pills/s to 1 endpoint, first attempt`;
  const series = [
    seriesOf('planned send', run.sincePlanned),
    seriesOf('answer of ingest', run.sinceAnswer, []),
  ];
  return { plot: { title, series } };
}

export function lines({ seconds, latency, fan, neighbours, drains }: Figures): string[] {
  return [
    `${seconds} s a run, open loop`,
    ...latency.flatMap(latencyLines),
    ...(fan.length === 0 ? [] : fanLines(fan)),
    ...(neighbours.length === 0 ? [] : neighbourLines(neighbours)),
    ...(drains.length === 0 ? [] : drainLines(drains)),
  ];
}

function latencyLines(run: WebhookRun): string[] {
  const isKept = run.sinceAnswer.p99 <= GOALS.latencyP99MaxMicros;
  const goal = `p99 ≤ ${GOALS.latencyP99MaxMicros / 1_000}: ${verdict(isKept)}`;
  type Row = readonly [from: string, spread: Percentiles, note: string];
  const rows: Row[] = [
    ['answer of ingest', run.sinceAnswer, faultOf(run) || goal],
    ['planned send', run.sincePlanned, ''],
    ['planned send, to the answer', run.acknowledged, ''],
    ['  generator late', run.lateness, ''],
  ];
  const cores = `dispatcher ${fixed(2, run.dispatcherCores)} cores, PostgreSQL ${fixed(2, run.postgresCores)}`;
  return [
    '',
    `Latency: ${run.perS} pills/s to 1 endpoint, to the arrival of the first attempt, ms`,
    ...table(rows, [
      ['from', ([from]) => from],
      ...percentileColumns<Row>(([, spread]) => spread, ['p50', 'p90', 'p99', 'p999', 'max']),
      ['', ([, , note]) => note],
    ]),
    `lost ${run.lost}, doubled pills ${run.doubled}, doubled ids ${run.doubledIds} of ${run.pills} pills, ` +
      `${run.accepted} messages (${run.joined} joined); signatures ${run.verified} good, ` +
      `${run.forged} bad; ${cores}`,
  ];
}

const LATENCY_COLUMNS: readonly Column<WebhookRun>[] = [
  ...percentileColumns<WebhookRun>(({ sinceAnswer }) => sinceAnswer, ['p50', 'p99'], 'answer '),
  ...percentileColumns<WebhookRun>(({ sincePlanned }) => sincePlanned, ['p50', 'p99'], 'plan '),
  ...percentileColumns<WebhookRun>(({ lateness }) => lateness, ['p99'], 'late '),
  ['lost', ({ lost }) => lost],
  ['doubled', ({ doubled }) => doubled],
];

function fanLines(fan: readonly WebhookRun[]): string[] {
  const best = bestOf(fan);
  const rate = (run: WebhookRun) =>
    `${fixed(0, run.deliveriesPerS)} messages/s with ${fixed(0, run.pillsPerS)} pills/s, at ${run.perS} pills/s`;
  return [
    '',
    `Fan: every pill to ${fan[0]!.endpoints} endpoints; ms; sustained: p99 ≤ 1 s, nothing waits in PostgreSQL`,
    ...table(fan, [
      ['pills/s', ({ perS }) => perS],
      ['messages/s', ({ deliveriesPerS }) => fixed(0, deliveriesPerS)],
      ['pills delivered/s', ({ pillsPerS }) => fixed(0, pillsPerS)],
      [
        'joined',
        ({ joined, accepted }) => `${Math.round((100 * joined) / Math.max(1, accepted))} %`,
      ],
      ...LATENCY_COLUMNS,
      ['overdue', ({ overdue }) => overdue],
      ['dispatcher', ({ dispatcherCores }) => fixed(2, dispatcherCores)],
      ['postgres', ({ postgresCores }) => fixed(2, postgresCores)],
      ['', (run) => noteOf(isSustained(run) ? 'sustained' : 'NOT sustained', faultOf(run))],
    ]),
    best === undefined
      ? 'No rate was sustained in a valid run.'
      : `Highest sustained rate: ${rate(best)}`,
  ];
}

function neighbourLines(runs: readonly NeighbourRun[]): string[] {
  const { healthyP99, hangingP99, ratio, valid } = summariseNeighbours(runs);
  const goal = valid ? verdict(ratio <= GOALS.neighbourRatioMax) : 'INVALID';
  const { perS, endpoints } = runs[0]!;
  return [
    '',
    `Slow neighbour: ${perS} pills/s, ${endpoints - 1} healthy endpoints judged; ms`,
    ...table(runs, [
      ['round', ({ round, hangs }) => `${round}, ${hangs ? '1 hangs' : 'all healthy'}`],
      ...LATENCY_COLUMNS,
      ['', faultOf],
    ]),
    `p99 from the answer, medians: ${ms(healthyP99)} and ${ms(hangingP99)}: × ${fixed(2, ratio)}, ` +
      `goal ≤ ${GOALS.neighbourRatioMax}: ${goal}`,
  ];
}

function drainLines(drains: readonly DrainRun[]): string[] {
  const { run, outageS } = drains[0]!;
  return [
    '',
    `Drain: ${run.perS} pills/s while all endpoints answer 500 for ${outageS} s; s from the recovery`,
    ...table(drains, [
      ['endpoints', (drain) => drain.run.endpoints],
      ['first', ({ firstS }) => fixed(1, firstS)],
      ['99 %', ({ mostS }) => fixed(1, mostS)],
      ['nothing waits', ({ emptyS }) => fixed(1, emptyS)],
      ['messages/s', ({ messagesPerS }) => fixed(0, messagesPerS)],
      ['pills/s', ({ pillsPerS }) => fixed(0, pillsPerS)],
      ['messages', (drain) => drain.run.accepted],
      ['attempts', (drain) => drain.run.attempts],
      ['still waiting', (drain) => drain.run.waitingMessages],
      ['lost', (drain) => drain.run.lost],
      ['doubled, same id', (drain) => drain.run.doubled],
      ['', (drain) => faultOf(drain.run)],
    ]),
  ];
}
