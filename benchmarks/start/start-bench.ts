import { ENGINE_VARIABLES } from '../../deploy/local/config.ts';
import { waitUntil } from '../../deploy/local/wait-until.ts';
import { readDemoKeys } from '../../domain/accounts/demo-key-file.ts';
import { openSocket } from '../harness/bench-socket.ts';
import { type Column, fixed, table } from '../harness/columns.ts';
import { inTemporaryFolder, launchStack } from '../harness/local-stack.ts';
import { median } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, type Say, type Scenario } from '../harness/scenario.ts';

/** `cold`: a data folder that did not exist; `warm`: the data of the start before. */
const KINDS = ['cold', 'warm'] as const;

const STEPS = ['build', 'engines', 'platform', 'socket', 'pill'] as const;

/** One start. Times in ms. */
export interface Start {
  readonly kind: (typeof KINDS)[number];
  readonly round: number;
  readonly wholeMs: number;
  readonly steps: Readonly<Record<(typeof STEPS)[number], number>>;
}

const START_MAX_MS = 3 * 60_000;
/** The first start on a machine downloads engines. */
const FIRST_START_MAX_MS = 15 * 60_000;
const PILL_MAX_MS = 30_000;
/** The launcher prints these when it begins, and when the engines are up. */
const BEGUN = 'starting the engines';
const ENGINES_UP = 'creating topics';

const FLAGS = { rounds: flag.whole('starts of each kind', 1, 100, 3) };

/**
 * The time from `npm start` to the first pill in a socket: with a fresh data folder, and again on
 * the data of that start. A first start that is not counted downloads missing engines and makes
 * the build; files are in the page cache afterwards.
 */
export const START: Scenario<OptionsOf<typeof FLAGS>> = {
  name: 'start',
  description: 'From the command "npm start" to the first pill in a socket, cold and warm.',
  flags: FLAGS,
  measure,
};

async function measure({ rounds }: OptionsOf<typeof FLAGS>, say: Say): Promise<Report> {
  say('a first start, not counted: downloads and the build are not measured');
  await inTemporaryFolder((folder) => startOnce(folder, FIRST_START_MAX_MS));
  const starts: Start[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    await inTemporaryFolder(async (folder) => {
      for (const kind of KINDS) {
        const moments = await startOnce(folder, START_MAX_MS);
        const wholeMs = moments.firstPill;
        say(`round ${round}, ${kind}: first pill in a socket after ${inSeconds(wholeMs)} s`);
        starts.push({ kind, round, wholeMs, steps: stepsOf(moments) });
      }
    });
  }
  const summaries = summariseStarts(starts);
  type Summary = (typeof summaries)[number];
  const lines = [
    'From "npm start" to the first pill of the demo market in a socket, s, medians; no downloads',
    ...table(summaries, [
      ['start', ({ kind }) => kind],
      ['rounds', ({ rounds: own }) => own],
      ['first pill', ({ wholeMs }) => inSeconds(wholeMs)],
      ['min', ({ wholeMinMs }) => inSeconds(wholeMinMs)],
      ['max', ({ wholeMaxMs }) => inSeconds(wholeMaxMs)],
      ...STEPS.map((step): Column<Summary> => [step, ({ steps }) => inSeconds(steps[step])]),
      ['', () => ''],
    ]),
  ];
  // Seconds only: a start has no reference to compare it with on another machine.
  return { figures: { summaries, starts }, lines, ratios: [], isProof: true };
}

/**
 * Runs `npm start` on a data folder until a socket that is subscribed to all symbols has its first
 * pill of the demo market, then stops it.
 * @returns moments in ms from the command
 * @throws when a step takes too long
 */
async function startOnce(folder: string, timeoutMs: number) {
  // The start has its own engines, whatever this run uses: engines take most of a start.
  const env = { ...process.env };
  for (const name of Object.values(ENGINE_VARIABLES)) delete env[name];
  const options = { words: [BEGUN, ENGINES_UP], env };
  const own = await launchStack(folder, ['npm', 'start', '--'], timeoutMs, options);
  try {
    let firstPill = 0;
    const key = readDemoKeys(own.stackFile).institutional;
    const socket = await openSocket(own.stack.stream, key, (text) => {
      if (text.startsWith('{"type":"pill')) firstPill ||= own.elapsed();
    });
    const socketLive = own.elapsed();
    const hasPill = () => firstPill > 0;
    await waitUntil('a pill of the demo market', hasPill, { timeoutMs: PILL_MAX_MS });
    socket.terminate();
    return {
      /** The first output of the launcher: npm has checked the build. */
      begun: own.printedMs.get(BEGUN)!,
      enginesUp: own.printedMs.get(ENGINES_UP)!,
      /** Every process is ready. */
      platformUp: own.upMs,
      socketLive,
      firstPill,
    };
  } finally {
    await own.stop();
  }
}

export function stepsOf(moments: Awaited<ReturnType<typeof startOnce>>): Start['steps'] {
  const { begun, enginesUp, platformUp, socketLive, firstPill } = moments;
  return {
    build: begun,
    engines: enginesUp - begun,
    platform: platformUp - enginesUp,
    socket: socketLive - platformUp,
    pill: firstPill - socketLive,
  };
}

export function summariseStarts(starts: readonly Start[]) {
  return KINDS.flatMap((kind) => {
    const own = starts.filter((start) => start.kind === kind);
    if (own.length === 0) return [];
    const wholes = own.map(({ wholeMs }) => wholeMs);
    const steps = STEPS.map((step) => [step, median(own.map((start) => start.steps[step]))]);
    return [
      {
        kind,
        rounds: own.length,
        wholeMs: median(wholes),
        wholeMinMs: Math.min(...wholes),
        wholeMaxMs: Math.max(...wholes),
        steps: Object.fromEntries(steps) as Start['steps'],
      },
    ];
  });
}

function inSeconds(millis: number): string {
  return fixed(1, millis / 1_000);
}
