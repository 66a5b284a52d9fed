import { Command, CommanderError } from 'commander';
import { addAccountCommands } from './account-commands.ts';
import { AdminError } from './environment.ts';
import { addPlatformCommands } from './platform-commands.ts';

/** `npm run admin -- <command>`: the operator's tasks; every change is in the audit log. */
const program = new Command('admin')
  .description(
    'Tasks of the operator. DATABASE_URL and PILLOLE_NAMESPACE say where; else the stack',
  )
  .option('--json', 'the result as JSON', false)
  .addHelpText('after', '\nExit codes: 0 done, 1 could not be done, 2 the command is not right.')
  .showHelpAfterError('(--help shows the commands)')
  .exitOverride();
addAccountCommands(program);
addPlatformCommands(program);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    const { message } = error as Error;
    const text = error instanceof AdminError ? message : `It could not be done: ${message}`;
    process.stderr.write(`${text}\n`);
    process.exitCode = 1;
  }
}
