import { type Command, InvalidArgumentError } from 'commander';
import { ERASED_AFTER_DAYS, reopenAccount } from '../../domain/accounts/account-closure.ts';
import {
  ACCOUNTS_LIST_MAX,
  findAccount,
  listAccounts,
  readAccount,
  revokeKeys,
  sendTestBillingEvent,
  setLimits,
  suspendAccount,
  unsuspendAccount,
} from '../../domain/accounts/operator.ts';
import { removeSecondFactors } from '../../domain/accounts/second-factor.ts';
import { NO_MONEY_MOVES } from '../../domain/accounts/test-billing.ts';
import { AdminError, type AdminSession, withAdminSession } from './admin-session.ts';
import { positive } from './option-values.ts';
import { print } from './print.ts';

/** Adds `account …` and `billing …`. */
export function addAccountCommands(program: Command): void {
  const account = program.command('account').description('Customer accounts');
  addReadCommands(account);
  addSuspensionCommands(account);
  addReopenCommand(account);
  addLimitsCommand(account);
  account
    .command('revoke-keys <account>')
    .description('Revokes all API keys of an account at once')
    .action(
      onAccount(async ({ db, operator }, accountId) => ({
        account: accountId,
        revoked: await revokeKeys(db, { ...operator, accountId }),
      })),
    );
  account
    .command('remove-second-factor <account>')
    .description('Removes the second factor of the users of an account, who get a mail about it')
    .action(
      onAccount(async ({ db, operator }, accountId) => {
        const removed = await removeSecondFactors(db, { ...operator, accountId });
        if (removed > 0) return { account: accountId, removed };
        throw new AdminError(`No user of ${accountId} has a second factor.`);
      }),
    );
  addBillingCommands(program);
}

function addReadCommands(group: Command): void {
  group
    .command('show <account>')
    .description('Shows an account; <account> is its id or the e-mail address of one of its users')
    .action(onAccount(({ db }, id) => readAccount(db, id)));
  group
    .command('list')
    .description('Lists accounts, newest first')
    .option('--limit <count>', `at most ${ACCOUNTS_LIST_MAX}`, positive, 50)
    .option('--before <account id>', 'continue after the last account of the previous list')
    .action(async (page: { limit: number; before?: string }, command: Command) =>
      print(await withAdminSession(({ db }) => listAccounts(db, page)), command),
    );
}

function addSuspensionCommands(group: Command): void {
  group
    .command('suspend <account>')
    .description('Ends all access of an account at once')
    .requiredOption('--reason <text>', 'shown to its users', oneLine)
    .action(
      onAccount(async ({ db, operator }, account, { reason }: { reason: string }) => {
        if (await suspendAccount(db, { ...operator, accountId: account, reason })) {
          return { account, status: 'suspended', reason };
        }
        throw new AdminError(`${account} is not active: see "account show ${account}".`);
      }),
    );
  group
    .command('unsuspend <account>')
    .description('Restores the access of a suspended account')
    .action(
      onAccount(async ({ db, operator }, account) => {
        if (await unsuspendAccount(db, { ...operator, accountId: account })) {
          return { account, status: 'active' };
        }
        throw new AdminError(`${account} is not suspended: see "account show ${account}".`);
      }),
    );
}

function addReopenCommand(group: Command): void {
  group
    .command('reopen <account>')
    .description(
      `Reopens an account that was closed at most ${ERASED_AFTER_DAYS} days ago: its users can sign ` +
        'in again; its keys and its subscription stay ended',
    )
    .action(
      onAccount(async ({ db, operator }, account) => {
        const status = await reopenAccount(db, { ...operator, accountId: account });
        if (status !== undefined) return { account, status, keys: 'ended', subscription: 'ended' };
        throw new AdminError(
          `${account} is not closed, or was closed more than ${ERASED_AFTER_DAYS} days ago: see ` +
            `"account show ${account}".`,
        );
      }),
    );
}

const UNNAMED = { rate: undefined, burst: undefined, callsPerDay: undefined };
type LimitOptions = { rate?: number; burst?: number; callsPerDay?: number; reset?: true };

function addLimitsCommand(group: Command): void {
  group
    .command('limits <account>')
    .description("Replaces the tier's limits for an account; limits not named stay as they are")
    .option('--rate <calls a second>', 'per process', positive)
    .option('--burst <calls>', 'at once, after a pause', positive)
    .option('--calls-per-day <calls>', 'per UTC day', positive)
    .option('--reset', "return to the tier's limits")
    .action((account: string, options: LimitOptions, command: Command) => {
      const { reset, ...named } = options;
      if (Object.keys(named).length > 0 === (reset === true)) {
        command.error('error: give at least one limit, or --reset alone');
      }
      const limits =
        reset === true ? { rate: null, burst: null, callsPerDay: null } : { ...UNNAMED, ...named };
      return onAccount(async ({ db, operator }, accountId) => ({
        account: accountId,
        ...(await setLimits(db, { ...operator, accountId, limits })),
      }))(account, options, command);
    });
}

function addBillingCommands(program: Command): void {
  const billing = program
    .command('billing')
    .description(`Events of the test billing provider. ${NO_MONEY_MOVES}`);
  for (const [verb, type, description] of [
    ['pay', 'payment.succeeded', 'A payment succeeds: paid for 30 days'],
    ['fail-payment', 'payment.failed', 'A payment fails: full access for 7 more days'],
    ['end', 'subscription.ended', 'The subscription ends at once'],
  ] as const) {
    billing
      .command(`${verb} <account>`)
      .description(description)
      .action(
        onAccount(async ({ db, operator }, accountId) => {
          const { kind } = await sendTestBillingEvent(db, { ...operator, accountId, type });
          if (kind === 'applied') return { account: accountId, event: type, note: NO_MONEY_MOVES };
          throw new AdminError(
            kind === 'not_test'
              ? `${accountId} has no subscription with the test provider: subscribe it first.`
              : `The event had no effect, the subscription has ended: subscribe ${accountId} again.`,
          );
        }),
      );
  }
}

/** The action of a command on the account that its first argument names; prints the result. */
function onAccount<Options>(
  work: (session: AdminSession, accountId: string, options: Options) => Promise<unknown>,
) {
  return async (idOrEmail: string, options: Options, command: Command): Promise<void> => {
    const result = await withAdminSession(async (session) => {
      const accountId = await findAccount(session.db, idOrEmail);
      if (accountId !== undefined) return work(session, accountId, options);
      throw new AdminError(`There is no account ${idOrEmail}: see "account list".`);
    });
    print(result, command);
  };
}

function oneLine(text: string): string {
  if (text.trim() !== '' && text.length <= 500 && !/\p{Cc}/u.test(text)) return text;
  throw new InvalidArgumentError('It must be one line of 1 to 500 characters.');
}
