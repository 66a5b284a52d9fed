import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  listCurrentNotices,
  NOTICE_LIMITS,
  NOTICE_SEVERITIES,
  type NoticeSeverity,
  publishNotice,
  withdrawNotice,
} from '../../lib/accounts/notices.ts';
import { AdminError, atDesk } from './environment.ts';
import { createGenerator, listGenerators, revokeGenerator } from './generators.ts';
import { print } from './print.ts';

interface Format {
  readonly json: boolean;
}

/** Adds `notice …` and `generator …`. */
export function addPlatformCommands(program: Command): void {
  addNoticeCommands(program);
  addGeneratorCommands(program);
}

function addNoticeCommands(program: Command): void {
  const notice = program.command('notice').description('What all customers are told');
  notice
    .command('publish <text>')
    .description('Publishes a notice in GET /api/status')
    .addOption(
      new Option('--severity <severity>', 'how much it matters')
        .choices(NOTICE_SEVERITIES)
        .default('info'),
    )
    .option('--until <time>', 'ISO 8601; else until it is withdrawn', time)
    .action(
      async (
        message: string,
        { severity, until }: { severity: NoticeSeverity; until?: Date },
        command: Command,
      ) => {
        const published = await atDesk(({ db, operator }) =>
          publishNotice(db, { ...operator, message, severity, until }),
        );
        if (published.kind === 'invalid') throw new AdminError(published.reason);
        if (published.kind === 'limit') {
          const max = NOTICE_LIMITS.currentMax;
          throw new AdminError(`${max} notices are in force, the limit: withdraw one first.`);
        }
        print(published.notice, command.optsWithGlobals<Format>());
      },
    );
  notice
    .command('withdraw <notice>')
    .description('Ends a notice at once')
    .action(async (id: string, _: unknown, command: Command) => {
      const ended = await atDesk(({ db, operator }) => withdrawNotice(db, { ...operator, id }));
      if (!ended) throw new AdminError(`No notice ${id} is in force: see "notice list".`);
      print({ notice: id, withdrawn: true }, command.optsWithGlobals<Format>());
    });
  notice
    .command('list')
    .description('Lists the notices in force')
    .action(async (_: unknown, command: Command) =>
      print(await atDesk(({ db }) => listCurrentNotices(db)), command.optsWithGlobals<Format>()),
    );
}

function addGeneratorCommands(program: Command): void {
  const generator = program.command('generator').description('Tokens of signal generators');
  const file = '--file <credentials file>';
  const fileIs = 'the INGEST_CREDENTIALS_FILE of the ingest gateway';
  generator
    .command('create <name>')
    .description('Makes a token, shown once; <name> becomes the source of its pills')
    .requiredOption(file, fileIs)
    .option('--expires <time>', 'ISO 8601; else never', time)
    .action(async (name: string, asked: { file: string; expires?: Date }, command: Command) => {
      const wanted = { name, file: asked.file, expires: asked.expires };
      const made = await atDesk(async (desk) => createGenerator(desk, wanted));
      print(made, command.optsWithGlobals<Format>());
    });
  generator
    .command('revoke <name>')
    .description('Ends the token of a generator')
    .requiredOption(file, fileIs)
    .action(async (name: string, asked: { file: string }, command: Command) => {
      const ended = await atDesk((desk) => revokeGenerator(desk, { name, file: asked.file }));
      print(ended, command.optsWithGlobals<Format>());
    });
  generator
    .command('list')
    .description('Lists the generators of a file')
    .requiredOption(file, fileIs)
    .action((asked: { file: string }, command: Command) =>
      print(listGenerators(asked.file), command.optsWithGlobals<Format>()),
    );
}

function time(text: string): Date {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && at.getTime() > Date.now()) return at;
  throw new InvalidArgumentError('It must be a time in the future, as 2030-01-31T00:00:00Z.');
}
