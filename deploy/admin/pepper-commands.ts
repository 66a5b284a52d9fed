import { type Command, InvalidArgumentError } from 'commander';
import { VERSION_MAX } from '../../domain/access/pepper.ts';
import { stackLayout } from '../local/stack-layout.ts';
import { AdminError, type AdminSession, withAdminSession } from './admin-session.ts';
import { readAdminConfig } from './config.ts';
import { duration } from './option-values.ts';
import { addPepper, listPeppers, resealAll, retirePepper } from './peppers.ts';
import { print } from './print.ts';

/** Adds `pepper …`. */
export function addPepperCommands(program: Command): void {
  const pepper = program
    .command('pepper')
    .description('Versions of the secret of key hashes and seals, in KEY_PEPPER_FILE');
  pepper
    .command('list')
    .description('Lists the versions, newest first, and what still depends on each')
    .action(onFile((session, file) => listPeppers(session, file)));
  pepper
    .command('add')
    .description('Adds a version: every process accepts it within a second, and uses it later')
    .option('--active-in <time>', 'until new writes use the version, e.g. 1h', duration, 60)
    .action(onFile((session, file, { activeIn }) => addPepper(session, file, activeIn)));
  pepper
    .command('reseal')
    .description('Seals all secrets again under the current version; may be run again at any time')
    .action(onFile((session, file) => resealAll(session, file)));
  pepper
    .command('retire')
    .argument('<version>', 'its number', versionNumber)
    .description('Removes a version, unless something still depends on it')
    .action(async (version: number, _: unknown, command: Command) =>
      print(
        await withAdminSession((session) => retirePepper(session, pepperFile(), version)),
        command,
      ),
    );
}

function onFile(
  work: (session: AdminSession, file: string, options: { activeIn: number }) => Promise<unknown>,
) {
  return async (options: { activeIn: number }, command: Command): Promise<void> =>
    print(await withAdminSession((session) => work(session, pepperFile(), options)), command);
}

/** The file of the environment, else of the local stack, like the database. */
function pepperFile(): string {
  const { pepperFile: file, databaseUrl } = readAdminConfig();
  if (file !== undefined) return file;
  if (databaseUrl === undefined) return stackLayout().pepper;
  throw new AdminError('KEY_PEPPER_FILE is not set: name the file that the processes use.');
}

function versionNumber(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= VERSION_MAX)
    return Number(text);
  throw new InvalidArgumentError(`It must be a number from 1 to ${VERSION_MAX}.`);
}
