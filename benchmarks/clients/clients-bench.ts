import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../lib/files/package-root.ts';
import { makePython } from '../../testing/python.ts';
import { fixed, table, verdict } from '../harness/columns.ts';
import { median } from '../harness/ratios.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, type Say, type Scenario } from '../harness/scenario.ts';

const run = promisify(execFile);
/**
 * Each client decodes so many pills in a second of CPU time, since a full machine gives it less than
 * a core; and its memory is flat once it is warm.
 */
const GOAL = { perCpuS: 100_000, growthMibMax: 16 } as const;
/** V8 grew its heap to its working size within four millions (measured). */
const WARM_PILLS = 5_000_000;
const PYTHON = path.join(packageRoot, 'sdk/python');
const TYPESCRIPT = path.join(packageRoot, 'dist/sdk/benchmarks/decode-main.js');
const OUTPUT_BYTES_MAX = 1_048_576;

const FLAGS = {
  millions: flag.whole('millions of pills a round', 1, 1_000, 10),
  rounds: flag.whole('rounds, in which the clients alternate', 1, 100, 1),
};
type Options = OptionsOf<typeof FLAGS>;

/** Figures of a client after a number of pills. */
interface Line {
  readonly pills: number;
  readonly perS: number;
  readonly perCpuS: number;
  readonly maxRssMib: number;
}

/** How fast the clients turn the bytes of stream frames into items, and what memory that takes. */
export const CLIENTS: Scenario<Options> = {
  name: 'clients',
  description: "Stream decoding of both clients: pills/s from frames' bytes to items, and memory.",
  flags: FLAGS,
  async measure(options, say) {
    const made = await makePython(path.join(PYTHON, 'requirements.txt'));
    if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
    const commands = [
      ['TypeScript', process.execPath, TYPESCRIPT],
      ['Python', made.python, path.join(PYTHON, 'benchmarks/decode.py')],
    ] as const;
    return reportOf(options, await measureAll(commands, options, say));
  },
};

type Commands = readonly (readonly [client: string, program: string, script: string])[];

/** The clients take turns, so that a slower phase of the machine hits both. */
async function measureAll(commands: Commands, { millions, rounds }: Options, say: Say) {
  const cells = commands.map(([client]) => ({ client, rounds: [] as Line[][] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, [client, program, script]] of commands.entries()) {
      say(`${client}: ${millions} million pills`);
      const limits = { maxBuffer: OUTPUT_BYTES_MAX };
      const { stdout } = await run(program, [script, String(millions)], limits);
      const lines = stdout.trim().split('\n');
      cells[at]!.rounds.push(lines.map((line) => JSON.parse(line) as Line));
    }
  }
  return cells.map(({ client, rounds: all }) => ({
    client,
    perS: median(all.map((lines) => lines.at(-1)!.perS)),
    perCpuS: median(all.map((lines) => lines.at(-1)!.perCpuS)),
    maxRssMib: Math.max(...all.map((lines) => lines.at(-1)!.maxRssMib)),
    growthMib: Math.max(...all.map(growthOf)),
    rounds: all,
  }));
}

/** MiB by which the largest resident memory grew after the client was warm. */
function growthOf(lines: readonly Line[]): number {
  const warm = lines.find(({ pills }) => pills >= WARM_PILLS) ?? lines.at(-1)!;
  return lines.at(-1)!.maxRssMib - warm.maxRssMib;
}

type Cell = Awaited<ReturnType<typeof measureAll>>[number];

function reportOf({ millions, rounds }: Options, cells: readonly Cell[]): Report {
  const isKept = ({ perCpuS, growthMib }: Cell) =>
    perCpuS >= GOAL.perCpuS && growthMib <= GOAL.growthMibMax;
  return {
    figures: { millions, rounds, cells },
    lines: [
      `${millions} million pills, 8 a frame, 50 symbols, ${rounds} round(s); one process, no network`,
      '',
      ...table(cells, [
        ['client', ({ client }) => client],
        ['pills/s', ({ perS }) => fixed(0, perS)],
        ['pills per CPU s', ({ perCpuS }) => fixed(0, perCpuS)],
        ['most MiB', ({ maxRssMib }) => fixed(0, maxRssMib)],
        ['grown after 5 M, MiB', ({ growthMib }) => fixed(1, growthMib)],
        [
          'goal',
          (cell) =>
            `≥ ${GOAL.perCpuS} per CPU s, ≤ ${GOAL.growthMibMax} MiB: ${verdict(isKept(cell))}`,
        ],
      ]),
    ],
    ratios: [],
    isProof: cells.every(isKept),
  };
}
