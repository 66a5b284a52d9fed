import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { asPilloleError, PilloleError } from '../error.ts';
import { VERSION } from '../version.ts';
import type { ConnectionOptions } from './connect.ts';
import { failureJson, failureLines } from './error-report.ts';
import { type ExitName, exitHelp, exitOf } from './exit-codes.ts';
import { type ExportCommandOptions, runExportCommand } from './export-command.ts';
import { type HistoryOptions, runHistory } from './history-command.ts';
import { runLatest } from './latest-command.ts';
import { type ListenOptions, runListen } from './listen-command.ts';
import { type RejectedOptions, runRejected } from './rejected-command.ts';
import { runTail, type TailOptions } from './tail-command.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';
import { runVerify, type VerifyOptions } from './verify-command.ts';

/** Runs a command line (without the program's own name). Never throws. */
export async function runProgram(terminal: Terminal, args: readonly string[]): Promise<ExitName> {
  let exit: ExitName = 'ok';
  const program = buildProgram(terminal, (name) => {
    exit = name;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 'ok' : 'usage';
    return printFailure(terminal, error, args.includes('--json'));
  }
}

function printFailure({ stderr }: Terminal, thrown: unknown, isJson: boolean): ExitName {
  if (thrown instanceof UsageError) {
    writeLine(
      stderr,
      isJson
        ? JSON.stringify({ type: 'error', code: 'usage', message: thrown.message })
        : `pillole: ${thrown.message}`,
    );
    return 'usage';
  }
  const isBug = !(thrown instanceof PilloleError);
  const error = asPilloleError(thrown, 'failed');
  if (isJson) writeLine(stderr, JSON.stringify({ type: 'error', ...failureJson(error) }));
  else for (const line of failureLines(error)) writeLine(stderr, `pillole: ${line}`);
  if (isBug && thrown instanceof Error) writeLine(stderr, String(thrown.stack));
  return exitOf(error);
}

function buildProgram(terminal: Terminal, onExit: (name: ExitName) => void): Command {
  const program = new Command('pillole')
    .description('Reads the pillole platform: newest pills, streams, history and verdicts.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
    })
    .addHelpText('after', `${KEY_HELP}${exitHelp()}`);

  command(program, 'tail')
    .argument('<symbols...>', 'symbols, or "*" for all (in quotes, or the shell expands it)')
    .description(
      'print pills as they come, until Ctrl-C; reconnects by itself and reports every gap',
    )
    .addOption(
      new Option('--mode <mode>', 'every pill, or only the newest of each symbol')
        .choices(['all', 'latest'])
        .default('all'),
    )
    .option('--no-snapshot', 'do not begin with the newest pill of each symbol')
    .option('--backfill', 'also print pills that were received long after their timestamp')
    .option('--resume <position>', 'continue from the position that an earlier run printed')
    .option('--since <time>', 'begin with pills received since this time (ISO 8601)')
    .option('--skip-refused', 'if the platform refuses some of the symbols, print the others')
    .option('-n, --count <n>', 'end after this many pills', positive)
    .action(async (symbols: string[], options: TailOptions) =>
      onExit(await runTail(terminal, symbols, options)),
    );
  command(program, 'latest')
    .argument('[symbols...]', 'up to 100 symbols; without any: the newest pill of all symbols')
    .description('print the newest pill of each symbol; one call')
    .action(async (symbols: string[], options: ConnectionOptions) =>
      onExit(await runLatest(terminal, symbols, options)),
    );
  command(program, 'history')
    .argument('<symbols...>', 'up to 20 symbols, printed in one time order')
    .description(
      'print the pills of a time range, in order time; each page of up to 5,000 is a call',
    )
    .option('--newest-first', 'begin with the newest pill')
    .requiredOption('--from <time>', 'beginning of the range, included (ISO 8601, UTC)')
    .option('--to <time>', 'end of the range, excluded; now by default, at most 31 days later')
    .option('-n, --count <n>', 'end after this many pills', positive)
    .action(async (symbols: string[], options: HistoryOptions) =>
      onExit(await runHistory(terminal, symbols, options)),
    );
  command(program, 'verify')
    .argument('[symbols...]', 'up to 20 symbols')
    .description('print whether you may act on symbols now; exit code 0 only if on all of them')
    .option('--id <id>', 'verify the pill with this id instead of the newest one')
    .action(async (symbols: string[], options: VerifyOptions) =>
      onExit(await runVerify(terminal, symbols, options)),
    );
  addExport(program, terminal, onExit);
  addRejected(program, terminal, onExit);
  addListen(program, terminal, onExit);
  return program;
}

function addExport(program: Command, terminal: Terminal, onExit: (name: ExitName) => void): void {
  command(program, 'export')
    .argument('[symbols...]', 'all by default')
    .description('make a file with the pills of a time range, download and check it; one call')
    .requiredOption('--from <time>', 'beginning of the range, included (ISO 8601, UTC)')
    .requiredOption('--to <time>', 'end of the range, excluded')
    .requiredOption('--output <file>', 'written beside and renamed')
    .addOption(
      new Option('--format <format>', 'format of the file')
        .choices(['parquet', 'arrow', 'csv.gz', 'ndjson.zst'])
        .default('parquet'),
    )
    .action(async (symbols: string[], options: ExportCommandOptions) =>
      onExit(await runExportCommand(terminal, symbols, options)),
    );
}

function addListen(program: Command, terminal: Terminal, onExit: (name: ExitName) => void): void {
  program
    .command('listen')
    .description('receive webhooks on this machine: print, verify and answer them, until Ctrl-C')
    .option('--port <port>', 'port to listen on; 0 = any free port', port, 4242)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--secret <whsec…>', 'secret to verify with; may be repeated', collected)
    .option('--forward-to <url>', 'forward deliveries to this address, and answer as it does')
    .option(
      '--status <code>',
      'answer verified deliveries with this status; 503 shows how they are retried',
      status,
      200,
    )
    .option('--json', 'for programs: print one JSON object per line')
    .addHelpText('after', LISTEN_HELP)
    .action(async (options: ListenOptions) => onExit(await runListen(terminal, options)));
}

function addRejected(program: Command, terminal: Terminal, onExit: (name: ExitName) => void): void {
  program
    .command('rejected')
    .description('for the owner of a generator: print pills that were refused, with the reason')
    .option('-f, --follow', 'go on until Ctrl-C, with what is refused from now on')
    .option('-n, --count <n>', 'begin with this many, at most 200; 20 by default', positive)
    .option('--code <code>', 'only refusals with this code, e.g. pill_invalid')
    .option('--json', 'for programs: print one JSON object per line')
    .option('--api-url <url>', 'address of the API (PILLOLE_API_URL)')
    .option('--token-file <file>', 'file that contains only the token of the generator')
    .addHelpText('after', TOKEN_HELP)
    .action(async (options: RejectedOptions) => onExit(await runRejected(terminal, options)));
}

function command(program: Command, name: string): Command {
  return program
    .command(name)
    .option('--json', 'for programs: print one JSON object per line')
    .option('--api-url <url>', 'address of the API (PILLOLE_API_URL)')
    .option(
      '--stream-url <url>',
      'address of streams (PILLOLE_STREAM_URL); by default the API provides it',
    )
    .option('--key-file <file>', 'file that contains only the key')
    .addOption(new Option('--key <key>').hideHelp().argParser(refuseKey));
}

const KEY_HELP = `
Key: --key-file, else PILLOLE_KEY, else .local/demo-keys.json (Pro) for a stack on this machine.
Addresses: the flags, else PILLOLE_API_URL and PILLOLE_STREAM_URL, else .local/stack.json.
`;

const TOKEN_HELP = `
Token: --token-file, else PILLOLE_GENERATOR_TOKEN; an open stack on this machine needs none.
`;

const LISTEN_HELP = `
Secret: --secret, else PILLOLE_WEBHOOK_SECRET (several separated by spaces). Without a secret nothing is verified.
A delivery that fails verification is answered with 401 and not forwarded.
`;

function refuseKey(): never {
  throw new UsageError(
    'A key on the command line is visible in the process list and in the shell history: remove it ' +
      'from the history. Set PILLOLE_KEY, or use --key-file.',
  );
}

function positive(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw new InvalidArgumentError('A whole number above 0 is expected.');
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('A port from 0 to 65535 is expected.');
}

function status(text: string): number {
  if (/^[2-5]\d\d$/.test(text)) return Number(text);
  throw new InvalidArgumentError('An HTTP status from 200 to 599 is expected.');
}

function collected(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
