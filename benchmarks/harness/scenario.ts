import os from 'node:os';
import { type Command, InvalidArgumentError } from 'commander';
import { rising, whole } from '../../lib/config/flags.ts';
import { fixed } from './columns.ts';
import { describeMachine } from './machine.ts';
import { type Report, resultsFolder, writeResult } from './results.ts';
import { type Stage, withStage } from './stage.ts';

export type Say = (line: string) => void;

/** An option of the command line; its name comes from its key: `openSeconds` is `--open-seconds`. */
interface Flag<T> {
  /** The placeholder of its value; '' for a switch. */
  readonly value: string;
  readonly what: string;
  readonly parse: (text: string) => T;
  readonly byDefault: T;
}

type Flags = Readonly<Record<string, Flag<unknown>>>;

export type OptionsOf<F extends Flags> = {
  readonly [K in keyof F]: F[K] extends Flag<infer T> ? T : never;
};

export const flag = {
  whole: (what: string, min: number, max: number, byDefault: number): Flag<number> => {
    return { value: '<n>', what, parse: whole(min, max), byDefault };
  },
  /** Whole numbers, separated by commas; they are sorted. */
  rising: (what: string, min: number, max: number, byDefault: number[]): Flag<number[]> => {
    return { value: '<list>', what: `${what}, rising`, parse: rising(min, max), byDefault };
  },
  /** Some of these names, separated by commas; all by default. */
  some: <T extends string>(what: string, names: readonly T[]): Flag<readonly T[]> => {
    const parse = (text: string) =>
      text.split(',').map((word) => {
        const known = names.find((name) => name === word);
        if (known !== undefined) return known;
        throw new InvalidArgumentError(`Give one or more of ${names.join(', ')}.`);
      });
    return { value: '<list>', what, parse, byDefault: names };
  },
  text: (value: string, what: string, byDefault: string): Flag<string> => {
    return { value, what, parse: (text) => text, byDefault };
  },
  /** A switch that is off by default. */
  on: (what: string): Flag<boolean> => ({ value: '', what, parse: () => true, byDefault: false }),
};

export interface Scenario<Options> {
  readonly name: string;
  readonly description: string;
  readonly flags: Flags;
  measure(options: Options, say: Say): Promise<Report>;
}

/** The `measure` of a scenario that needs engines and processes. */
export function onStage<Options>(measure: (stage: Stage, options: Options) => Promise<Report>) {
  return (options: Options, say: Say) => withStage(say, (stage) => measure(stage, options));
}

const OUT = flag.text('<dir>', 'folder of the results', resultsFolder);
/** The options that `--seconds` of `all` replaces. */
const LENGTHS = ['seconds', 'warmUp', 'openSeconds', 'profileSeconds'];

export function addScenario(program: Command, scenario: Scenario<never>, say: Say): void {
  const command = program.command(scenario.name).description(scenario.description);
  addOptions(command, { ...scenario.flags, out: OUT }).action(async (options: { out: string }) => {
    process.stdout.write(`${await runScenario(scenario, options, say)}\n`);
  });
}

/** Adds `all`, which runs when no command is given: some scenarios, one after the other. */
export function addAll(
  program: Command,
  scenarios: readonly { readonly scenario: Scenario<never>; readonly overrides?: object }[],
  say: Say,
): void {
  const names = scenarios.map(({ scenario }) => scenario.name);
  const list = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  const command = program
    .command('all', { isDefault: true })
    .description(`${list}, each on engines of its own; tables at the end.`)
    .option('--seconds <n>', 'length of each run, warm-up and profile', whole(1, 3_600))
    .allowExcessArguments();
  const rounds = flag.whole('rounds of ingest and start', 1, 100, 3);
  addOptions(command, { rounds, out: OUT });
  command.action(async (flags: { seconds?: number; out: string }, { args: [unknown] }) => {
    if (unknown !== undefined) {
      const known = program.commands.map((one) => one.name()).join(', ');
      throw new Error(
        `There is no benchmark "${unknown}": name one of ${known}, or none to run ${list}.`,
      );
    }
    const tables: string[] = [];
    for (const { scenario, overrides } of scenarios) {
      const { name } = scenario;
      say(`${name} (${tables.length + 1} of ${scenarios.length})`);
      try {
        const options = { ...defaultsOf(scenario, flags.seconds), ...flags, ...overrides };
        tables.push(`${name}\n${await runScenario(scenario, options, say)}`);
      } catch (error) {
        // The others are measured all the same.
        tables.push(`${name}\nfailed: ${(error as Error).message}`);
        process.exitCode = 1;
      }
    }
    process.stdout.write(`${tables.join('\n\n\n')}\n`);
    say('"npm run bench -- compare" judges the ratios by the baseline');
  });
}

/** Measures, writes the result and sets the exit code. @returns the table */
async function runScenario(scenario: Scenario<never>, options: { out: string }, say: Say) {
  const machine = describeMachine();
  const report = await scenario.measure(options as never, say);
  const { figures, ratios } = report;
  const at = new Date().toISOString();
  const loadAfter = os.loadavg()[0] ?? 0;
  const result = { benchmark: scenario.name, at, machine, loadAfter, ...figures, ratios };
  for (const file of await writeResult(options.out, result, report.plot)) {
    say(`written to ${file}`);
  }
  if (!report.isProof) process.exitCode = 1;
  const { cpu, cores, node, loadBefore } = machine;
  const load = `load ${fixed(1, loadBefore)} before, ${fixed(1, loadAfter)} after`;
  return [`${cores} × ${cpu}, Node ${node}, ${load}`, ...report.lines].join('\n');
}

/** Defaults of a scenario, with every length in seconds set to `length` where it is given. */
function defaultsOf({ flags }: Scenario<never>, length: number | undefined): object {
  const defaults = Object.entries(flags).map(([key, { byDefault }]) => {
    return [key, length !== undefined && LENGTHS.includes(key) ? length : byDefault];
  });
  return Object.fromEntries(defaults);
}

function addOptions(command: Command, flags: Flags): Command {
  for (const [key, { value, what, parse, byDefault }] of Object.entries(flags)) {
    const name = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    command.option(`--${name} ${value}`.trim(), what, (text) => parse(text), byDefault);
  }
  return command;
}
