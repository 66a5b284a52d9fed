import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  listCurrentNotices,
  NOTICE_LIMITS,
  NOTICE_SEVERITIES,
  type NoticeSeverity,
  publishNotice,
  withdrawNotice,
} from '../../domain/accounts/operator-notices.ts';
import { AdminError, withAdminSession } from './admin-session.ts';
import { createGenerator, listGenerators, revokeGenerator } from './generators.ts';
import { print } from './print.ts';

/** Adds `notice …` and `generator …`. */
export function addPlatformCommands(program: Command): void {
  addNoticeCommands(program);
  addGeneratorCommands(program);
}

function addNoticeCommands(program: Command): void {
  const notice = program.command('notice').description('Notices to all customers');
  notice
    .command('publish <text>')
    .description('Publishes a notice in GET /api/status')
    .addOption(
      new Option('--severity <severity>', 'severity of the notice')
        .choices(NOTICE_SEVERITIES)
        .default('info'),
    )
    .option('--until <time>', 'ISO 8601; default: until it is withdrawn', time)
    .action(
      async (
        message: string,
        { severity, until }: { severity: NoticeSeverity; until?: Date },
        command: Command,
      ) => {
        const published = await withAdminSession(({ db, operator }) =>
          publishNotice(db, { ...operator, message, severity, until }),
        );
        if (published.kind === 'invalid') throw new AdminError(published.reason);
        if (published.kind === 'limit') {
          const max = NOTICE_LIMITS.currentMax;
          throw new AdminError(`${max} notices are in force, the maximum: withdraw one first.`);
        }
        print(published.notice, command);
      },
    );
  notice
    .command('withdraw <notice>')
    .description('Withdraws a notice at once')
    .action(async (id: string, _: unknown, command: Command) => {
      const isWithdrawn = await withAdminSession(({ db, operator }) =>
        withdrawNotice(db, { ...operator, id }),
      );
      if (!isWithdrawn) throw new AdminError(`No notice ${id} is in force: see "notice list".`);
      print({ notice: id, withdrawn: true }, command);
    });
  notice
    .command('list')
    .description('Lists the notices in force')
    .action(async (_: unknown, command: Command) =>
      print(await withAdminSession(({ db }) => listCurrentNotices(db)), command),
    );
}

function addGeneratorCommands(program: Command): void {
  const generator = program.command('generator').description('Tokens of signal generators');
  const fileFlag = '--file <credentials file>';
  const fileHelp = 'the INGEST_CREDENTIALS_FILE of the ingest gateway';
  generator
    .command('create <name>')
    .description('Creates a token, shown once; <name> becomes the source of the pills')
    .requiredOption(fileFlag, fileHelp)
    .option('--expires <time>', 'ISO 8601; default: never', time)
    .action(async (name: string, options: { file: string; expires?: Date }, command: Command) => {
      const { file, expires } = options;
      const created = await withAdminSession(async (session) =>
        createGenerator(session, { name, file, expires }),
      );
      print(created, command);
    });
  generator
    .command('revoke <name>')
    .description('Revokes the token of a generator')
    .requiredOption(fileFlag, fileHelp)
    .action(async (name: string, { file }: { file: string }, command: Command) => {
      const revoked = await withAdminSession((session) => revokeGenerator(session, { name, file }));
      print(revoked, command);
    });
  generator
    .command('list')
    .description('Lists the generators of a file')
    .requiredOption(fileFlag, fileHelp)
    .action(({ file }: { file: string }, command: Command) => print(listGenerators(file), command));
}

function time(text: string): Date {
  const at = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && at.getTime() > Date.now()) return at;
  throw new InvalidArgumentError('It must be a time in the future, e.g. 2030-01-31T00:00:00Z.');
}
