import { LATE_NOTE, noteOf } from '../harness/cells.ts';
import {
  type Column,
  fixed,
  ms,
  percentileColumns,
  ratioColumns,
  table,
  verdict,
} from '../harness/columns.ts';
import { compareRounds } from '../harness/ratios.ts';
import { type FanoutCell, isWhole } from './cell.ts';
import { isKept, type SlowCell } from './slow-consumers.ts';

/** The goals with this number of sockets. */
const GOALS = {
  sockets: 500,
  /** CPU of the stream process ÷ that of the publish loop, all symbols, by pills a second. */
  ratioMax: { 100: 1, 400: 0.7, 1000: 0.6 } as Readonly<Record<number, number>>,
  /** From the planned send, two of fifty symbols, 20,000 frames a second; ms. */
  latency: { perS: 1_000, p50: 5, p99: 25, p999: 100 },
  /** p99 of the others while some sockets do not read ÷ while all do. */
  slowP99RatioMax: 1.1,
} as const;

/**
 * Compares the stream process with the loop beside it, round by round, by CPU seconds per million
 * deliveries.
 */
export function summarise(cells: readonly FanoutCell[]) {
  const firsts = cells.filter(({ target, round }) => target === 'loop' && round === 1);
  return firsts.map(({ pattern, perS }) => {
    const own = cells.filter((cell) => cell.pattern === pattern && cell.perS === perS);
    const of = (target: FanoutCell['target']) => own.filter((cell) => cell.target === target);
    const cost = (cell: FanoutCell) => cell.serverSecondsPerMillion;
    const { median: stream, ...ratios } = compareRounds(of('stream'), of('loop'), cost);
    const loop = compareRounds(of('loop'), of('loop'), cost).median;
    return { pattern, perS, stream, loop, ...ratios };
  });
}

/** CPU of the publish loop against ours: more is better. */
export function ratiosOf(cells: readonly FanoutCell[]) {
  return summarise(cells).map(({ pattern, perS, ratio }) => {
    const own = cells.filter((cell) => cell.pattern === pattern && cell.perS === perS);
    return {
      name: `publish loop ÷ stream, CPU, ${pattern} at ${perS.toLocaleString('en')}/s`,
      ratio: 1 / ratio,
      valid: own.every((cell) => cell.valid && isWhole(cell)),
    };
  });
}

const CELL_COLUMNS: readonly Column<FanoutCell>[] = [
  ['server', ({ target }) => target],
  ['symbols', ({ pattern }) => pattern],
  ['rate', ({ perS }) => `${perS}/s`],
];

const CPU_COLUMNS: readonly Column<FanoutCell>[] = [
  ...CELL_COLUMNS,
  ['deliveries/s', ({ deliveriesPerS }) => Math.round(deliveriesPerS)],
  ['CPU s/M', ({ serverSecondsPerMillion }) => fixed(2, serverSecondsPerMillion)],
  ['server', ({ serverCores }) => fixed(2, serverCores)],
  ['client', ({ clientCores }) => fixed(2, clientCores)],
  ['rest', ({ restCores }) => fixed(2, restCores)],
  ['others', ({ otherCores }) => fixed(2, otherCores)],
  ['pills/frame', ({ client }) => fixed(1, client.received / Math.max(1, client.frames))],
  ['pills/read', ({ client }) => fixed(1, client.received / Math.max(1, client.reads))],
  ['B/pill', ({ client }) => fixed(0, client.bytes / Math.max(1, client.received))],
  ['note', faultOf],
];

const LATENCY_COLUMNS: readonly Column<FanoutCell>[] = [
  ...CELL_COLUMNS,
  ...percentileColumns<FanoutCell>(({ delivered }) => delivered),
  ['acked p99', ({ acknowledged }) => ms(acknowledged.p99)],
  ['sent late p99', ({ lateness }) => ms(lateness.p99)],
  ['lost', ({ lost }) => lost],
  ['doubled', ({ client }) => client.doubled],
  ['note', (cell) => noteOf(faultOf(cell), latencyGoalOf(cell))],
];

export function lines(figures: {
  readonly sockets: number;
  readonly seconds: number;
  readonly cells: readonly FanoutCell[];
  readonly feedAlone: readonly Pick<FanoutCell, 'target' | 'perS' | 'serverCores'>[];
  readonly slow: readonly SlowCell[];
}): string[] {
  const { sockets, seconds, cells, feedAlone, slow } = figures;
  const summaries = summarise(cells);
  const goalOf = ({ pattern, perS, ratio }: (typeof summaries)[number]) => {
    const goal = pattern === 'all' && sockets === GOALS.sockets ? GOALS.ratioMax[perS] : undefined;
    return goal === undefined ? '' : `≤ ${goal}: ${verdict(ratio <= goal)}`;
  };
  return [
    `${sockets} sockets, ${seconds} s a cell; server, log, generator and load client share the cores`,
    '',
    'CPU of the server process alone, seconds per million deliveries; cores that were busy',
    ...table(cells, CPU_COLUMNS, 2),
    '',
    'Planned send of a pill → its arrival at the load client, ms',
    ...table(cells, LATENCY_COLUMNS, 2),
    '',
    'Stream ÷ publish loop, CPU seconds per million deliveries; medians of rounds',
    ...table(
      summaries,
      [
        ['symbols', ({ pattern }) => pattern],
        ['rate', ({ perS }) => `${perS}/s`],
        ['stream', ({ stream }) => fixed(2, stream)],
        ['loop', ({ loop }) => fixed(2, loop)],
        ...ratioColumns<(typeof summaries)[number]>('ratio'),
        ['goal', goalOf],
      ],
      2,
    ),
    '',
    ...feedAlone.map(({ target, perS, serverCores }) => {
      const cores = `${fixed(3, serverCores)} cores`;
      return `Reading the log alone (no socket), ${target} at ${perS}/s: ${cores}`;
    }),
    ...(slow.length === 0 ? [] : ['', ...slowLines(slow, sockets)]),
  ];
}

function slowLines(cells: readonly SlowCell[], sockets: number): string[] {
  const [reading, stalled] = [false, true].map((stalls) =>
    cells.filter((cell) => cell.stalls === stalls),
  );
  const p99 = ({ cell }: SlowCell) => cell.delivered.p99;
  const { ratio, ratioMin, ratioMax } = compareRounds(stalled!, reading!, p99);
  const goal = `goal ≤ ${GOALS.slowP99RatioMax}: ${verdict(ratio <= GOALS.slowP99RatioMax)}`;
  return [
    `${cells[0]!.slow} of ${sockets} sockets stop reading, 1,000/s; p99 of the others in ms`,
    ...table(cells, [
      ['round', ({ round, stalls }) => `${round}, ${stalls ? 'some stop' : 'all read'}`],
      ['p99', (cell) => ms(p99(cell))],
      ['server MiB', ({ bytes }) => (bytes / 2 ** 20).toFixed(0)],
      ['closed with 4001', ({ closed }) => closed],
      ['latest got', ({ latestGot }) => latestGot],
      ['skipped', ({ latestSkipped }) => latestSkipped],
      ['', (cell) => (isKept(cell) ? '' : 'NOT KEPT')],
    ]),
    `p99 ratio ${fixed(2, ratio)} (${fixed(2, ratioMin)} to ${fixed(2, ratioMax)}; ${goal})`,
  ];
}

function faultOf(cell: FanoutCell): string {
  const { client, notAcknowledged, wantedPerSocket, valid } = cell;
  if (notAcknowledged > 0) return `${notAcknowledged} not acknowledged`;
  if (isWhole(cell)) return valid ? '' : LATE_NOTE;
  const { receivedMin, receivedMax, closed, firstError } = client;
  const got = `${receivedMin} to ${receivedMax} of ${wantedPerSocket} a socket`;
  return `LOSS: ${got}, ${closed} closed ${firstError}`;
}

function latencyGoalOf({ target, pattern, perS, sockets, delivered }: FanoutCell): string {
  const { latency } = GOALS;
  const isGoal = pattern === '2of50' && perS === latency.perS && sockets === GOALS.sockets;
  if (!isGoal || target === 'loop') return '';
  const limits = [latency.p50, latency.p99, latency.p999];
  const figures = [delivered.p50, delivered.p99, delivered.p999];
  const isReached = figures.every((micros, i) => micros <= limits[i]! * 1_000);
  return `goal ${limits.join(' / ')}: ${verdict(isReached)}`;
}
