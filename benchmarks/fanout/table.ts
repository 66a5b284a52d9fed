import { alignedLines } from '../aligned-lines.ts';
import { type Cell, isWhole } from './cell.ts';
import type { FanoutResult } from './fanout.ts';
import { GOALS, type Summary, summarise } from './goals.ts';
import { median } from './percentiles.ts';
import { isKept, type SlowReport } from './slow.ts';

/** The result as text. */
export function fanoutTable(result: FanoutResult): string {
  const { machine, loadAfter, sockets, seconds, cells, feedAlone, memory } = result;
  const { cpu, cores, node, loadBefore } = machine;
  const load = `load ${loadBefore.toFixed(1)} before, ${loadAfter.toFixed(1)} after`;
  const lines = [
    `${cores} × ${cpu}, Node ${node}, ${load}`,
    `${sockets} sockets, ${seconds} s a cell; server, log, generator and load client share the cores`,
    '',
    'CPU of the server process alone, seconds per million deliveries; cores that were busy',
    ...alignedLines([CPU_HEAD, ...cells.map(cpuRow)], 2),
    '',
    'Planned send of a pill → its arrival at the load client, ms',
    ...alignedLines([LATENCY_HEAD, ...cells.map(latencyRow)], 2),
  ];
  const summaries = summarise(cells);
  if (summaries.length > 0) {
    lines.push('', 'Stream ÷ publish loop, CPU seconds per million deliveries; medians of rounds');
    lines.push(...alignedLines([RATIO_HEAD, ...summaries.map((one) => ratioRow(one, sockets))], 2));
  }
  for (const { target, perS, serverCores } of feedAlone) {
    const told = serverCores?.toFixed(3) ?? '?';
    lines.push('', `Reading the log alone (no socket), ${target} at ${perS}/s: ${told} cores`);
  }
  for (const one of memory) {
    const kib = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`;
    const verdict = one.idleBytesPerSocket <= GOALS.idleBytesPerSocketMax ? 'kept' : 'MISSED';
    const goal = one.target === 'stream' ? ` (goal ≤ 8 KiB idle: ${verdict})` : '';
    const [idle, busy] = [kib(one.idleBytesPerSocket), kib(one.busyBytesPerSocket)];
    lines.push('', `Resident memory a socket, ${one.target}: ${idle} idle, ${busy} busy${goal}`);
  }
  if (result.slow.length > 0) lines.push('', ...slowLines(result.slow, sockets));
  return lines.join('\n');
}

/** A line for each round, and one for the whole. */
function slowLines(reports: readonly SlowReport[], sockets: number): string[] {
  const mib = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
  const lines = reports.map((one) => {
    const { reading, deaf, closed, latestGot, latestSkipped, readingBytes, deafBytes } = one;
    const p99 = `p99 ${ms(reading.delivered.p99)} → ${ms(deaf.delivered.p99)} ms`;
    const ends = `${closed} closed with 4001; latest got ${latestGot}, skipped ${latestSkipped}`;
    const memory = `server ${mib(readingBytes)} → ${mib(deafBytes)}`;
    return `  ${p99}; ${memory}; ${ends}${isKept(one) ? '' : '; NOT KEPT'}`;
  });
  const ratios = reports.map(({ reading, deaf }) => deaf.delivered.p99 / reading.delivered.p99);
  const ratio = median(ratios);
  const verdict = ratio <= GOALS.slowP99RatioMax ? 'kept' : 'MISSED';
  const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  return [
    `${reports[0]!.slow} of ${sockets} sockets stop reading, 1,000/s; the others, all reading → not`,
    ...lines,
    `  p99 ratio ${ratio.toFixed(2)} (${spread}; goal ≤ ${GOALS.slowP99RatioMax}: ${verdict})`,
  ];
}

const CELL_HEAD = ['server', 'symbols', 'rate'];
const CPU_HEAD = [
  ...CELL_HEAD,
  ...[
    'deliveries/s',
    'CPU s/M',
    'server',
    'client',
    'rest',
    'others',
    'pills/frame',
    'pills/read',
    'B/pill',
  ],
  'note',
];
const LATENCY_HEAD = [
  ...CELL_HEAD,
  ...['p50', 'p99', 'p99.9', 'max', 'acked p99', 'sent late p99', 'lost', 'doubled', 'note'],
];
const RATIO_HEAD = ['symbols', 'rate', 'stream', 'loop', 'ratio', 'min', 'max', 'goal'];

function nameCells({ target, pattern, perS }: Cell): string[] {
  return [target, pattern, `${perS}/s`];
}

function cpuRow(cell: Cell): string[] {
  const { client, serverCores, clientCores, restCores, otherCores } = cell;
  return [
    ...nameCells(cell),
    String(Math.round(cell.deliveriesPerS)),
    cell.serverSecondsPerMillion?.toFixed(2) ?? '?',
    ...[serverCores, clientCores, restCores, otherCores].map((cores) => cores?.toFixed(2) ?? '?'),
    (client.received / Math.max(1, client.frames)).toFixed(1),
    (client.received / Math.max(1, client.reads)).toFixed(1),
    (client.bytes / Math.max(1, client.received)).toFixed(0),
    noteOf(cell),
  ];
}

function latencyRow(cell: Cell): string[] {
  const { p50, p99, p999, max } = cell.delivered;
  const { acknowledged, lateness } = cell.feed;
  return [
    ...nameCells(cell),
    ...[p50, p99, p999, max, acknowledged.p99, lateness.p99].map(ms),
    String(cell.lost),
    String(cell.client.doubled),
    [noteOf(cell), goalOf(cell)].filter(Boolean).join('; '),
  ];
}

function noteOf(cell: Cell): string {
  const { client, feed } = cell;
  if (feed.failed > 0) return `${feed.failed} not acknowledged`;
  if (!isWhole(cell)) {
    const { receivedMin, receivedMax, closed, told } = client;
    const got = `${receivedMin} to ${receivedMax} of ${cell.wantedPerSocket} a socket`;
    return `LOSS: ${got}, ${closed} closed ${told}`;
  }
  return cell.valid ? '' : 'INVALID: sent over 10 ms late';
}

function goalOf({ target, pattern, perS, sockets, delivered }: Cell): string {
  const goal = GOALS.latency;
  const isGoal = pattern === goal.pattern && perS === goal.perS && sockets === GOALS.sockets;
  if (!isGoal || target === 'loop') return '';
  const { p50Micros, p99Micros, p999Micros } = goal;
  const isKept =
    delivered.p50 <= p50Micros && delivered.p99 <= p99Micros && delivered.p999 <= p999Micros;
  const told = [p50Micros, p99Micros, p999Micros].map((micros) => micros / 1_000).join(' / ');
  return `goal ${told}: ${isKept ? 'kept' : 'MISSED'}`;
}

function ratioRow(summary: Summary, sockets: number): string[] {
  const { pattern, perS, stream, loop, ratio, ratioMin, ratioMax } = summary;
  const goal = pattern === 'all' && sockets === GOALS.sockets ? GOALS.ratioMax[perS] : undefined;
  const verdict = goal === undefined ? '' : `≤ ${goal}: ${ratio <= goal ? 'kept' : 'MISSED'}`;
  const figures = [stream, loop, ratio, ratioMin, ratioMax].map((figure) => figure.toFixed(2));
  return [pattern, `${perS}/s`, ...figures, verdict];
}

function ms(micros: number): string {
  return (micros / 1_000).toFixed(2);
}
