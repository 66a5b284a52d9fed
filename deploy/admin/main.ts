import { Command, CommanderError } from 'commander';
import { printConfig } from '../../lib/config/command-line.ts';
import { describeSettings } from '../../lib/config/describe.ts';
import { unknownSettings } from '../../lib/config/unknown-settings.ts';
import { addAccountCommands } from './account-commands.ts';
import { AdminError } from './admin-session.ts';
import { addAuditCommands } from './audit-commands.ts';
import { readAdminConfig } from './config.ts';
import { addPepperCommands } from './pepper-commands.ts';
import { addPlatformCommands } from './platform-commands.ts';
import { addSecurityCommand } from './security-commands.ts';
import { addSupportCommands } from './support-commands.ts';

/** `npm run admin -- <command>`: the operator's tasks; every change is in the audit log. */
const program = new Command('admin')
  .description(
    'Tasks of the operator, on the database that DATABASE_URL and PILLOLE_NAMESPACE name ' +
      '(default: the local stack)',
  )
  .option('--json', 'print the result as JSON', false)
  .option('--print-config', 'print the settings in force and where each comes from')
  .on('option:print-config', () => printConfig('admin', readAdminConfig))
  .addHelpText('after', `\n${describeSettings('admin')}`)
  .addHelpText('after', '\nExit codes: 0 success, 1 failure, 2 wrong usage.')
  .showHelpAfterError('(--help shows the commands)')
  .exitOverride();
addAccountCommands(program);
addAuditCommands(program);
addPepperCommands(program);
addPlatformCommands(program);
addSecurityCommand(program);
addSupportCommands(program);

for (const warning of unknownSettings(process.env)) process.stderr.write(`Warning: ${warning}.\n`);
try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    const { message } = error as Error;
    const text = error instanceof AdminError ? message : `The command failed: ${message}`;
    process.stderr.write(`${text}\n`);
    process.exitCode = 1;
  }
}
