import path from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { isSymbol } from '../../schemas/pill.ts';
import { formatTimestamp, type Micros, parseTimestamp } from '../../schemas/timestamp.ts';
import { symbolOfFile } from './quote-pill.ts';
import { type Pace, parsePace } from './schedule.ts';

/** A replay as requested on the command line. */
export interface ReplayRequest extends Flags {
  readonly file: string;
  readonly symbol: string;
  readonly start: Micros;
}

/** The server's limit of one batch. */
export const BATCH_MAX = 1_000;
const BATCH_DEFAULT = 500;

interface Flags {
  readonly symbol?: string;
  readonly state: string;
  readonly confidence: number | 'spread';
  readonly pace: Pace;
  readonly time: 'now' | 'own';
  /** Part of every id; by default undefined with the file's own times. */
  readonly run?: string | undefined;
  readonly start?: Micros;
  readonly via: 'http' | 'kafka';
  readonly batch: number;
  readonly format: 'ndjson' | 'json';
  readonly concurrency: number;
  readonly tries: number;
  readonly ingest?: string;
  readonly credential?: string;
  readonly kafka?: string;
  readonly registry?: string;
  readonly namespace: string;
  readonly stack?: string;
}

/**
 * Reads the command line. Exits with 2 and a message when it is wrong, with 0 after --help.
 * @param now the clock, for the default start
 */
export function readReplayRequest(argv: readonly string[], now: Micros): ReplayRequest {
  const command: Command = replayCommand();
  command.parse([...argv], { from: 'user' });
  const file = command.args[0]!;
  const flags = command.opts<Flags>();
  const symbol = flags.symbol ?? symbolOfFile(path.basename(file));
  if (symbol === undefined) {
    const name = path.basename(file);
    command.error(`error: "${name}" names no currency pair: give --symbol, e.g. --symbol 7203.T`);
  }
  const start = flags.start ?? now;
  const run = flags.run ?? (flags.time === 'now' ? runName(start) : undefined);
  return { ...flags, file, symbol, start, run };
}

/** Name of a run that starts at this moment: `20261120T010203.004000Z`. */
export function runName(start: Micros): string {
  return formatTimestamp(start).replaceAll(/[-:]/g, '');
}

function replayCommand(): Command {
  return new Command('replay')
    .description('Turns a file of quotes (CSV: timestamp,bid,ask) into pills and sends them.')
    .argument('<file>', 'quote file; the spread is sent in percent of mid')
    .option(
      '--symbol <symbol>',
      'symbol of the pills; default: from the name, usdjpy-… → USD/JPY',
      symbolFlag,
    )
    .option('--state <label>', 'market_state of the pills', 'open')
    .option(
      '--confidence <number|spread>',
      '0 to 100, or: 100 / (1 + spread / 0.05)',
      confidenceFlag,
      'spread',
    )
    .option('--pace <pace>', 'recorded, fast, or <factor>x, e.g. 10x', paceFlag, 'fast')
    .addOption(
      new Option('--time <time>', 'now: current timestamps, live; own: as in the file, backfill')
        .choices(['now', 'own'])
        .default('now'),
    )
    .option('--run <name>', 'part of every id; default with --time now: the start', runFlag)
    .option(
      '--start <time>',
      'start of a run of --time now; an earlier start continues that run',
      startFlag,
    )
    .addOption(new Option('--via <way>', 'transport').choices(['http', 'kafka']).default('http'))
    .option(
      '--batch <n>',
      `pills in one request, 1 to ${BATCH_MAX}; 1 posts them singly`,
      count(BATCH_MAX),
      BATCH_DEFAULT,
    )
    .addOption(
      new Option('--format <name>', 'of a batch').choices(['ndjson', 'json']).default('ndjson'),
    )
    .option(
      '--concurrency <n>',
      'concurrent requests; above 1, pills may overtake each other',
      count(256),
      1,
    )
    .option('--tries <n>', 'attempts of one request, with the same ids', count(1_000), 10)
    .option('--ingest <url>', 'ingest server; default: the running stack')
    .addOption(new Option('--credential <gen_…>', 'generator credential').env('INGEST_CREDENTIAL'))
    .option('--kafka <brokers>', 'host:port,… for --via kafka; default: the running stack')
    .option('--registry <url>', 'schema registry for --via kafka; default: the running stack')
    .addOption(new Option('--namespace <name>').env('PILLOLE_NAMESPACE').default('').hideHelp())
    .option('--stack <file>', 'file with the addresses of a running stack')
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
}

function count(max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number from 1 to ${max}.`);
  };
}

function symbolFlag(text: string): string {
  if (isSymbol(text)) return text;
  throw new InvalidArgumentError('Give 1 to 32 capital letters, digits and . : / _ & = ^ -.');
}

function confidenceFlag(text: string): number | 'spread' {
  if (text === 'spread') return text;
  const value = Number(text);
  if (/^\d+(?:\.\d+)?$/.test(text) && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Give a number from 0 up, or "spread".');
}

function paceFlag(text: string): Pace {
  const pace = parsePace(text);
  if (pace !== undefined) return pace;
  throw new InvalidArgumentError('Give recorded, fast, or a factor like 10x.');
}

function runFlag(text: string): string {
  if (/^[\x21-\x7e]{1,40}$/.test(text)) return text;
  throw new InvalidArgumentError('Give 1 to 40 printable characters without a space.');
}

function startFlag(text: string): Micros {
  const parsed = parseTimestamp(text);
  if (parsed.ok) return parsed.micros;
  throw new InvalidArgumentError(parsed.detail);
}
