import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { asPilloleError, PilloleError } from '../error.ts';
import { VERSION } from '../version.ts';
import type { ConnectionOptions } from './connection.ts';
import { type ExitName, exitHelp, exitOf } from './exit-codes.ts';
import { failureJson, failureLines } from './failure.ts';
import { type HistoryOptions, runHistory } from './history.ts';
import { runLatest } from './latest.ts';
import { type ListenOptions, runListen } from './listen.ts';
import { runTail, type TailOptions } from './tail.ts';
import { type Terminal, UsageError, writeLine } from './terminal.ts';
import { runVerify, type VerifyOptions } from './verify.ts';

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
    return tellFailure(terminal, error, args.includes('--json'));
  }
}

function tellFailure({ stderr }: Terminal, thrown: unknown, isJson: boolean): ExitName {
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
    .description('Reads the pillole platform: the newest pills, the stream, history, verdicts.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
    })
    .addHelpText('after', `${KEY_HELP}${exitHelp()}`);

  command(program, 'tail')
    .argument('<symbols...>', 'symbols, or "*" for all (quoted, else the shell expands it)')
    .description('prints pills as they come, until Ctrl-C; comes back by itself, tells every gap')
    .addOption(
      new Option('--mode <mode>', 'every pill, or the newest of each symbol')
        .choices(['all', 'latest'])
        .default('all'),
    )
    .option('--no-snapshot', 'do not begin with the newest pill of each symbol')
    .option('--backfill', 'also pills that came long after their time')
    .option('--resume <position>', 'go on from a position that was told before')
    .option('--since <time>', 'begin with pills received since then (ISO 8601)')
    .option('-n, --count <n>', 'end after so many pills', positive)
    .action(async (symbols: string[], options: TailOptions) =>
      onExit(await runTail(terminal, symbols, options)),
    );
  command(program, 'latest')
    .argument('[symbols...]', 'up to 100 symbols; without one: the newest pill of all')
    .description('prints the newest pill of each symbol; one call')
    .action(async (symbols: string[], options: ConnectionOptions) =>
      onExit(await runLatest(terminal, symbols, options)),
    );
  command(program, 'history')
    .argument('<symbol>', 'one symbol')
    .description('prints its pills of a time, in order time; each page of 1,000 is a call')
    .requiredOption('--from <time>', 'beginning, included (ISO 8601, UTC)')
    .option('--to <time>', 'end, excluded; now by default, at most 31 days later')
    .option('-n, --count <n>', 'end after so many pills', positive)
    .action(async (symbol: string, options: HistoryOptions) =>
      onExit(await runHistory(terminal, symbol, options)),
    );
  command(program, 'verify')
    .argument('[symbols...]', 'up to 20 symbols')
    .description('says whether one may act on them now; exit code 0 only if on all of them')
    .option('--id <id>', 'ask about this pill instead of the newest one')
    .action(async (symbols: string[], options: VerifyOptions) =>
      onExit(await runVerify(terminal, symbols, options)),
    );
  program
    .command('listen')
    .description(
      'receives webhooks on this machine: shows, verifies and answers them, until Ctrl-C',
    )
    .option('--port <port>', 'where it listens; 0 = any that is free', port, 4242)
    .option('--host <address>', 'of which address', '127.0.0.1')
    .option('--secret <whsec…>', 'to verify with; several times for several', collected)
    .option('--forward-to <url>', 'pass deliveries on, and answer as it does')
    .option(
      '--status <code>',
      'answer to verified ones: 503 shows how they come again',
      status,
      200,
    )
    .option('--json', 'for programs: one JSON object a line')
    .addHelpText('after', LISTEN_HELP)
    .action(async (options: ListenOptions) => onExit(await runListen(terminal, options)));
  return program;
}

function command(program: Command, name: string): Command {
  return program
    .command(name)
    .option('--json', 'for programs: one JSON object a line')
    .option('--api-url <url>', 'address of the API (PILLOLE_API_URL)')
    .option('--stream-url <url>', 'address of streams (PILLOLE_STREAM_URL); else the API tells it')
    .option('--key-file <file>', 'file that holds the key alone')
    .addOption(new Option('--key <key>').hideHelp().argParser(refuseKey));
}

const KEY_HELP = `
The key: --key-file, else PILLOLE_KEY, else .local/demo-keys.json (Pro) for a stack of this machine.
Addresses: flags, else PILLOLE_API_URL and PILLOLE_STREAM_URL, else .local/stack.json.
`;

const LISTEN_HELP = `
The secret: --secret, else PILLOLE_WEBHOOK_SECRET (several separated by spaces); without one nothing is verified.
What is not verified is answered with 401, and not passed on.
`;

function refuseKey(): never {
  throw new UsageError(
    'A key on the command line stands in the process list and in the history of the shell; remove ' +
      'it there. Set PILLOLE_KEY, or name a file with --key-file.',
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
