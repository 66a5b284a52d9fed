import type { Command } from 'commander';
import { readSecurityEvents } from '../../domain/accounts/security-log.ts';
import { withAdminSession } from './admin-session.ts';
import { duration } from './option-values.ts';
import { print } from './print.ts';

const DAY_S = 86_400;

/** Adds `security`. */
export function addSecurityCommand(program: Command): void {
  program
    .command('security')
    .description(
      'Counts refused credentials, sign-ins, resets, tests and closed sockets, the most frequent first, ' +
        'with the networks that caused most of them; kept for 30 days in steps of 5 minutes',
    )
    .option('--since <time>', 'how far back, e.g. 1h', duration, DAY_S)
    .action(async ({ since }: { since: number }, command: Command) =>
      print(await withAdminSession(({ db }) => readSecurityEvents(db, since)), command),
    );
}
