import { alignedLines } from '../aligned-lines.ts';
import type { Ratio } from '../compare/ratio.ts';
import type { Extras } from '../results.ts';
import type { DrainRun } from './drain.ts';
import {
  bestOf,
  faultOf,
  GOALS,
  isSustained,
  type NeighbourRun,
  summariseNeighbours,
} from './goals.ts';
import { isWhole, type Spread } from './report.ts';
import type { WebhookRun } from './run.ts';
import type { WebhooksResult } from './webhooks.ts';

/** The result as text. */
export function webhooksTable(result: WebhooksResult): string {
  const { machine, seconds, latency, fan, neighbours, drains } = result;
  const { cpu, cores, node, loadBefore } = machine;
  return [
    `${cores} × ${cpu}, Node ${node}, load before ${loadBefore.toFixed(1)}; ${seconds} s a run, open loop`,
    ...(latency === null ? [] : latencyLines(latency)),
    ...(fan.length === 0 ? [] : fanLines(fan)),
    ...(neighbours.length === 0 ? [] : neighbourLines(neighbours)),
    ...(drains.length === 0 ? [] : drainLines(drains)),
  ].join('\n');
}

/** A webhook against ingest's own answer, and the others with and without a hanging neighbour. */
export function webhooksExtras({ latency, neighbours }: WebhooksResult): Extras {
  const ratios: Ratio[] = [];
  if (latency !== null) {
    ratios.push({
      name: 'POST → ok ÷ POST → webhook, p50',
      ratio: latency.acknowledged.p50 / latency.sincePlanned.p50,
      valid: latency.valid && isWhole(latency),
    });
  }
  if (neighbours.length > 0) {
    const { ratio, valid } = summariseNeighbours(neighbours);
    ratios.push({ name: 'all healthy ÷ 1 hangs, p99', ratio: 1 / ratio, valid });
  }
  if (latency === null) return { ratios };
  const mark = (name: string) => (latency.valid ? name : `${name} (INVALID)`);
  return {
    ratios,
    title: `Webhooks, ${latency.perS} pills/s to 1 endpoint, first attempt`,
    latencies: [
      { name: mark('from the planned send'), encoded: latency.sincePlanned.encoded },
      { name: mark('from the answer of ingest'), encoded: latency.sinceAnswer.encoded },
    ],
    timelines: [{ name: mark('from the planned send'), seconds: latency.timeline }],
  };
}

function latencyLines(run: WebhookRun): string[] {
  const isKept = run.sinceAnswer.p99 <= GOALS.latencyP99MaxMicros;
  const goal = `p99 ≤ ${GOALS.latencyP99MaxMicros / 1_000}: ${isKept ? 'kept' : 'MISSED'}`;
  const { p50, p99, p999, max } = run.acknowledged;
  const { lateness } = run;
  return [
    '',
    `Latency: ${run.perS} pills/s to 1 endpoint, to the arrival of the first attempt, ms`,
    ...alignedLines([
      ['from', 'p50', 'p90', 'p99', 'p99.9', 'max', ''],
      ['answer of ingest', ...figures(run.sinceAnswer), faultOf(run) || goal],
      ['planned send', ...figures(run.sincePlanned), ''],
      ['planned send, to the answer', ...[p50, Number.NaN, p99, p999, max].map(ms), ''],
      [
        '  generator late',
        ...[lateness.p50, Number.NaN, lateness.p99, lateness.p999, lateness.max].map(ms),
        '',
      ],
    ]),
    `lost ${run.lost}, doubled pills ${run.doubled}, doubled ids ${run.doubledIds} of ${run.pills} pills, ` +
      `${run.accepted} messages (${run.joined} joined); signatures ${run.verified} good, ${run.forged} bad; ` +
      `dispatcher ${cores(run.dispatcherCores)} cores, PostgreSQL ${cores(run.postgresCores)}`,
  ];
}

function fanLines(fan: readonly WebhookRun[]): string[] {
  const best = bestOf(fan);
  const headline =
    best === undefined
      ? 'No rate was sustained in a valid run.'
      : `Most that was sustained: ${best.deliveriesPerS.toFixed(0)} messages/s with ` +
        `${best.pillsPerS.toFixed(0)} pills/s, at ${best.perS} pills/s`;
  return [
    '',
    `Fan: every pill to ${fan[0]!.endpoints} endpoints; ms; sustained: p99 ≤ 1 s, nothing waits in PostgreSQL`,
    ...alignedLines([
      [
        ...['pills/s', 'messages/s', 'pills delivered/s', 'joined', 'answer p99', 'plan p50'],
        ...['plan p99', 'overdue', 'lost', 'doubled', 'late p99', 'dispatcher', 'postgres', ''],
      ],
      ...fan.map((run) => [
        ...[String(run.perS), run.deliveriesPerS.toFixed(0), run.pillsPerS.toFixed(0)],
        ...[`${Math.round((100 * run.joined) / Math.max(1, run.accepted))} %`],
        ...[run.sinceAnswer.p99, run.sincePlanned.p50, run.sincePlanned.p99].map(ms),
        ...[run.overdue, run.lost, run.doubled].map(String),
        ...[ms(run.lateness.p99), cores(run.dispatcherCores), cores(run.postgresCores)],
        [isSustained(run) ? 'sustained' : 'NOT sustained', faultOf(run)].filter(Boolean).join(', '),
      ]),
    ]),
    headline,
  ];
}

function neighbourLines(cells: readonly NeighbourRun[]): string[] {
  const { healthyP99, hangingP99, ratio, valid } = summariseNeighbours(cells);
  const isKept = ratio <= GOALS.neighbourRatioMax;
  const verdict = valid ? (isKept ? 'kept' : 'MISSED') : 'INVALID';
  const others = cells[0]!.run.endpoints - 1;
  return [
    '',
    `Slow neighbour: ${cells[0]!.run.perS} pills/s, ${others} healthy endpoints judged; ms`,
    ...alignedLines([
      [
        ...['round', 'answer p50', 'answer p99', 'plan p50', 'plan p99', 'late p99'],
        ...['lost', 'doubled', ''],
      ],
      ...cells.map(({ round, hangs, run }) => [
        `${round}, ${hangs ? '1 hangs' : 'all healthy'}`,
        ...[run.sinceAnswer.p50, run.sinceAnswer.p99].map(ms),
        ...[run.sincePlanned.p50, run.sincePlanned.p99, run.lateness.p99].map(ms),
        ...[String(run.lost), String(run.doubled), faultOf(run)],
      ]),
    ]),
    `p99 from the answer, medians: ${ms(healthyP99)} and ${ms(hangingP99)}: × ${ratio.toFixed(2)}, ` +
      `goal ≤ ${GOALS.neighbourRatioMax}: ${verdict}`,
  ];
}

function drainLines(drains: readonly DrainRun[]): string[] {
  const seconds = (value: number | null) => value?.toFixed(1) ?? 'not';
  return [
    '',
    `Drain: ${drains[0]!.run.perS} pills/s while all endpoints answer 500 for ${drains[0]!.outageS} s; s from the recovery`,
    ...alignedLines([
      [
        ...['endpoints', 'first', '99 %', 'nothing waits', 'messages/s', 'pills/s', 'messages'],
        ...['attempts', 'still waiting', 'lost', 'doubled, same id', ''],
      ],
      ...drains.map(({ run, firstS, mostS, emptyS, messagesPerS, pillsPerS }) => [
        ...[String(run.endpoints), ...[firstS, mostS, emptyS].map(seconds)],
        ...[messagesPerS.toFixed(0), pillsPerS.toFixed(0)],
        ...[run.accepted, run.attempts, run.waitingMessages, run.lost, run.doubled].map(String),
        faultOf(run),
      ]),
    ]),
  ];
}

function figures({ p50, p90, p99, p999, max }: Spread): string[] {
  return [p50, p90, p99, p999, max].map(ms);
}

/** NaN is told as nothing. */
function ms(micros: number): string {
  return Number.isNaN(micros) ? '' : (micros / 1_000).toFixed(2);
}

function cores(value: number | null): string {
  return value?.toFixed(2) ?? '?';
}
