import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { dedicatedUrl } from '../../domain/dedicated/dedicated-url.ts';
import { createDedicatedStreams } from '../../domain/dedicated/streams.ts';
import { setPriority } from '../../lib/child-process/priority.ts';
import { type FanoutCell, measureCell } from '../fanout/cell.ts';
import { SYMBOLS, subscribeFrames } from '../fanout/plan.ts';
import { inRounds } from '../harness/cells.ts';
import { ms, percentileColumns, ratioColumns, table, verdict } from '../harness/columns.ts';
import { compareRounds, median } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { startWorker } from '../harness/worker.ts';
import { buildLoadClient, type LoadClient, type OpenClient } from '../load/load-client.ts';
import { type PillLoad, startLoad } from '../load/pill-load.ts';
import type { Trouble } from './trouble-process.ts';

/** The disturbance of the Pro process during a cell. */
const TROUBLES = ['idle', 'overload', 'slow', 'crash'] as const;
type Kind = (typeof TROUBLES)[number];

/** The p99 beside a disturbed process may exceed the idle p99 by a tenth. */
const RATIO_MAX = 1.1;
/** Ten times the handshakes that a process admits. */
const HANDSHAKES_PER_S = 10_000;
const SETTLE_MS = 1_000;
/** The Pro process is killed at this share of the run. */
const CRASH_AT = 0.3;
/** Pro's clients would be on other machines. */
const CLIENTS_NICE = 19;
const READY_MAX_MS = 60_000;

const FLAGS = {
  rate: flag.whole('pills a second', 1, 10_000, 200),
  seconds: flag.whole('length of each cell', 1, 3_600, 10),
  rounds: flag.whole('number of rounds', 1, 100, 3),
  sockets: flag.whole('Pro sockets on all symbols', 1, 900, 500),
  slowReaders: flag.whole('Pro sockets that never read', 1, 100, 20),
  proNice: flag.whole('priority of the Pro process, 0 to 19', 0, 19, 0),
};
type Options = OptionsOf<typeof FLAGS>;

interface Bench {
  readonly stage: Stage;
  readonly namespace: string;
  readonly key: string;
  readonly load: PillLoad;
  readonly dedicated: LoadClient;
  readonly openClient: OpenClient;
}

/** One dedicated client while the Pro process beside it is alternately idle and disturbed. */
export const DEDICATED: Scenario<Options> = {
  name: 'dedicated',
  description: 'p99 of a dedicated client while the Pro process is idle, overloaded, killed.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, options: Options): Promise<Report> {
  const { rate, seconds, rounds, proNice } = options;
  const openClient = buildLoadClient(stage.folder);
  const log = await stage.addNamespace('dedicated');
  const { namespace } = log;
  const key = await stage.addDemoKey(namespace);
  const url = await startDedicated(stage, namespace);
  const load = await startLoad({ via: 'direct', log, symbols: SYMBOLS });
  stage.onStop(load.stop);
  const dedicated = await openClient({ url, key, saysLive: true }, 1, subscribeFrames('all', 1));
  stage.onStop(dedicated.stop);
  const bench = { stage, namespace, key, load, dedicated, openClient };
  stage.say('warm-up, not counted');
  await measureTrouble(bench, options, 'idle');
  const cells = await inRounds(TROUBLES, rounds, async (trouble) => {
    const cell = await measureTrouble(bench, options, trouble);
    const { delivered, lateness, valid, done } = cell;
    const figures = `p50 ${ms(delivered.p50)}, p99 ${ms(delivered.p99)} ms`;
    const late = `sent ${ms(lateness.p99)} ms late at p99${valid ? '' : ': INVALID'}`;
    stage.say(`${trouble}: ${figures}, ${late}; ${done}`);
    return cell;
  });
  const summaries = TROUBLES.map((trouble) => summarise(cells, trouble));
  const sum = (of: (cell: FanoutCell) => number) => cells.reduce((all, cell) => all + of(cell), 0);
  const invalid = sum(({ valid }) => (valid ? 0 : 1));
  const doubled = sum(({ client }) => client.doubled);
  return {
    figures: { options, cells },
    lines: [
      `${rate} pills/s, ${seconds} s a cell, ${rounds} rounds; Pro process nice ${proNice}`,
      'One dedicated client; planned send → arrival, ms, medians of rounds; ratio: p99 ÷ the idle p99',
      ...table(summaries, [
        ['Pro is', ({ trouble }) => trouble],
        ...percentileColumns<(typeof summaries)[number]>(
          ({ delivered }) => delivered,
          ['p50', 'p99', 'p999'],
        ),
        ['ack p99', ({ ackP99 }) => ms(ackP99)],
        ...ratioColumns<(typeof summaries)[number]>('ratio'),
        [`≤ ${RATIO_MAX}`, ({ ratio, valid }) => (valid ? verdict(ratio <= RATIO_MAX) : 'INVALID')],
      ]),
      `lost ${sum(({ lost }) => lost)}, doubled ${doubled}`,
      ...(invalid === 0 ? [] : [`${invalid} cells are INVALID: pills were sent over 10 ms late`]),
    ],
    ratios: summaries.slice(1).map(({ trouble, ratio, valid }) => {
      return { name: `idle ÷ ${trouble}, p99`, ratio: 1 / ratio, valid };
    }),
    isProof: cells.every(({ valid, lost, client }) => valid && lost + client.doubled === 0),
  };
}

/** Starts the supervisor and makes a dedicated socket. @returns its address, when it serves */
async function startDedicated(stage: Stage, namespace: string): Promise<string> {
  await stage.start('dedicated', namespace);
  const port = await stage.ports.allocate('dedicated', 0);
  const db = stage.openDatabase(namespace);
  const { account_id: accountId } = await db
    .selectFrom('subscriptions')
    .select('account_id')
    .where('tier', '=', 'institutional')
    .executeTakeFirstOrThrow();
  const streams = createDedicatedStreams(db, { from: port, to: port });
  const made = await streams.create({ accountId, label: 'bench', actor: 'system' });
  if (made.kind !== 'ok') throw new Error(`No dedicated socket: ${made.kind}.`);
  const isReady = async () => (await streams.get(accountId, made.stream.name))?.state === 'ready';
  await waitUntil('the dedicated socket', isReady, { timeoutMs: READY_MAX_MS });
  return dedicatedUrl('ws://127.0.0.1:{port}', made.stream);
}

/**
 * Each cell has a Pro process of its own, with its sockets; the disturbance begins before the first
 * pill.
 */
async function measureTrouble(bench: Bench, options: Options, trouble: Kind) {
  const { stage, namespace, key, load, dedicated, openClient } = bench;
  const { sockets, seconds, rate, slowReaders, proNice } = options;
  const startPro = async () => {
    const { pid, port, stop } = await stage.start('stream', namespace);
    if (proNice !== 0) setPriority(pid, proNice);
    return { pid, stop, url: `ws://127.0.0.1:${port}/api/stream`, key, saysLive: true };
  };
  const clients: LoadClient[] = [];
  let pro = await startPro();
  const addSockets = async () => {
    const frames = subscribeFrames('all', 1);
    clients.push(await openClient(pro, sockets, frames, { nice: CLIENTS_NICE }));
  };
  const crash = async () => {
    await sleep(seconds * 1_000 * CRASH_AT);
    process.kill(pro.pid, 'SIGKILL');
    pro = await startPro();
    await addSockets();
  };
  const troublemaker = startWorker('dedicated/trouble-process', { nice: CLIENTS_NICE });
  const ask = (order: Trouble | { report: true }) =>
    troublemaker.ask<{ answered: number; ended: number }>(order);
  try {
    if (trouble !== 'idle') await addSockets();
    if (trouble === 'overload') {
      await ask({ url: pro.url, key, handshakesPerS: HANDSHAKES_PER_S });
    }
    if (trouble === 'slow') await ask({ url: pro.url, key, slowReaders });
    await sleep(SETTLE_MS);
    const cell = await measureCell({ name: 'dedicated', pid: undefined, load }, dedicated, {
      ...{ pattern: 'all', perS: rate, seconds, sockets: 1 },
      ...(trouble === 'crash' ? { beside: crash } : {}),
    });
    const { answered, ended } = await ask({ report: true });
    const done = {
      idle: 'no clients',
      overload: `${sockets} sockets, ${Math.round(answered / seconds)} handshakes/s answered`,
      slow: `${slowReaders} unread replays, ${ended} closed by the server`,
      crash: `${sockets} sockets, killed and started again`,
    }[trouble];
    return { ...cell, trouble, done };
  } finally {
    troublemaker.stop();
    await Promise.all(clients.map((client) => client.stop()));
    await pro.stop();
  }
}

/** Medians of the rounds, in µs; a ratio is a p99 ÷ the idle p99 of the same round. */
function summarise(cells: readonly (FanoutCell & { readonly trouble: Kind })[], trouble: Kind) {
  const own = cells.filter((cell) => cell.trouble === trouble);
  const idle = cells.filter((cell) => cell.trouble === 'idle');
  const of = (key: 'p50' | 'p99' | 'p999') => median(own.map(({ delivered }) => delivered[key]));
  const { ratio, ratioMin, ratioMax } = compareRounds(own, idle, ({ delivered }) => delivered.p99);
  return {
    trouble,
    delivered: { ...own[0]!.delivered, p50: of('p50'), p99: of('p99'), p999: of('p999') },
    /** Latency of the log's acknowledgement, which no stream process affects. */
    ackP99: median(own.map(({ acknowledged }) => acknowledged.p99)),
    ...{ ratio, ratioMin, ratioMax },
    valid: own.every(({ valid }) => valid),
  };
}
