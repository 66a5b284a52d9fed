import { type Command, InvalidArgumentError } from 'commander';
import { AUDIT_PAGE_MAX, readAudit } from '../../lib/accounts/audit.ts';
import {
  ACCOUNTS_LIST_MAX,
  findAccount,
  listAccounts,
  readAccount,
  revokeKeys,
  setLimits,
  suspendAccount,
  tellTestBilling,
  unsuspendAccount,
} from '../../lib/accounts/operator.ts';
import { NO_MONEY_MOVES } from '../../lib/accounts/test-billing.ts';
import { AdminError, atDesk, type Desk } from './environment.ts';
import { print } from './print.ts';

interface Format {
  readonly json: boolean;
}

const INTEGER_MAX = 2_147_483_647;

/** Adds `account …`, `billing …` and `audit`. */
export function addAccountCommands(program: Command): void {
  const account = program.command('account').description('Accounts of customers');

  account
    .command('show <account>')
    .description('Shows an account; <account> is its id, or the e-mail of a user of it')
    .action((account: string, _: unknown, command: Command) =>
      onAccount(command, account, ({ db }, id) => readAccount(db, id)),
    );
  account
    .command('list')
    .description('Lists accounts, newest first')
    .option('--limit <count>', `at most ${ACCOUNTS_LIST_MAX}`, positive, 50)
    .option('--before <account id>', 'goes on after the last one of a list')
    .action(async (page: { limit: number; before?: string }, command: Command) =>
      print(await atDesk(({ db }) => listAccounts(db, page)), command.optsWithGlobals<Format>()),
    );
  account
    .command('suspend <account>')
    .description('Ends all access of an account at once')
    .requiredOption('--reason <text>', 'told to its users', oneLine)
    .action((account: string, { reason }: { reason: string }, command: Command) =>
      onAccount(command, account, async ({ db, operator }, accountId) => {
        if (await suspendAccount(db, { ...operator, accountId, reason })) {
          return { account: accountId, status: 'suspended', reason };
        }
        throw new AdminError(`${accountId} is not active: see "account show ${accountId}".`);
      }),
    );
  account
    .command('unsuspend <account>')
    .description('Gives an account that was suspended its access back')
    .action((account: string, _: unknown, command: Command) =>
      onAccount(command, account, async ({ db, operator }, accountId) => {
        if (await unsuspendAccount(db, { ...operator, accountId })) {
          return { account: accountId, status: 'active' };
        }
        throw new AdminError(`${accountId} is not suspended: see "account show ${accountId}".`);
      }),
    );
  account
    .command('limits <account>')
    .description("Sets limits in place of the tier's; those not named stay")
    .option('--rate <calls a second>', 'per process', positive)
    .option('--burst <calls>', 'at once, after a silence', positive)
    .option('--calls-per-day <calls>', 'per UTC day', positive)
    .option('--reset', "all limits are the tier's again")
    .action((account: string, asked: Limits, command: Command) => {
      const { rate, burst, callsPerDay, reset } = asked;
      const named = { rate, burst, callsPerDay };
      const isNamed = Object.values(named).some((value) => value !== undefined);
      if (isNamed === (reset === true)) {
        command.error('error: name at least one limit, or --reset alone');
      }
      const limits = reset === true ? { rate: null, burst: null, callsPerDay: null } : named;
      return onAccount(command, account, async ({ db, operator }, accountId) => ({
        account: accountId,
        ...(await setLimits(db, { ...operator, accountId, limits })),
      }));
    });
  account
    .command('revoke-keys <account>')
    .description('Ends all API keys of an account at once')
    .action((account: string, _: unknown, command: Command) =>
      onAccount(command, account, async ({ db, operator }, accountId) => ({
        account: accountId,
        revoked: await revokeKeys(db, { ...operator, accountId }),
      })),
    );

  const billing = program.command('billing').description(`Test provider. ${NO_MONEY_MOVES}`);
  for (const [verb, type, what] of [
    ['pay', 'payment.succeeded', 'A payment succeeds: paid for 30 days'],
    ['fail-payment', 'payment.failed', 'A payment fails: full access for 7 days more'],
    ['end', 'subscription.ended', 'The subscription ends at once'],
  ] as const) {
    billing
      .command(`${verb} <account>`)
      .description(what)
      .action((account: string, _: unknown, command: Command) =>
        onAccount(command, account, async ({ db, operator }, accountId) => {
          const { kind } = await tellTestBilling(db, { ...operator, accountId, type });
          if (kind === 'applied') return { account: accountId, event: type, note: NO_MONEY_MOVES };
          throw new AdminError(
            kind === 'not_test'
              ? `${accountId} has no subscription of the test provider: it must subscribe first.`
              : `It had no effect, the subscription is over: ${accountId} must subscribe again.`,
          );
        }),
      );
  }

  program
    .command('audit <account>')
    .description('Shows who changed what, newest first; "platform" shows what concerns no account')
    .option('--limit <count>', `at most ${AUDIT_PAGE_MAX}`, positive, 50)
    .option('--before <entry>', 'goes on after the last one of a list', positive)
    .action(
      async (account: string, asked: { limit: number; before?: number }, command: Command) => {
        const before = asked.before === undefined ? undefined : String(asked.before);
        const page = { limit: asked.limit, before };
        const entries = await atDesk(async ({ db }) => {
          if (account === 'platform') return readAudit(db, null, page);
          const known = await findAccount(db, account);
          // The log survives the account.
          const entries = await readAudit(db, known ?? account, page);
          if (known !== undefined || entries.length > 0) return entries;
          // A page behind the last entry of an account that is erased is empty, and no mistake.
          const any = await readAudit(db, account, { limit: 1 });
          if (any.length > 0) return entries;
          throw new AdminError(
            `There is no account ${account}, and no entry of one: see "account list".`,
          );
        });
        print(entries, command.optsWithGlobals<Format>());
      },
    );
}

interface Limits {
  readonly rate?: number;
  readonly burst?: number;
  readonly callsPerDay?: number;
  readonly reset?: true;
}

async function onAccount(
  command: Command,
  idOrEmail: string,
  work: (desk: Desk, accountId: string) => Promise<unknown>,
): Promise<void> {
  const result = await atDesk(async (desk) => {
    const accountId = await findAccount(desk.db, idOrEmail);
    if (accountId !== undefined) return work(desk, accountId);
    throw new AdminError(`There is no account ${idOrEmail}: see "account list".`);
  });
  print(result, command.optsWithGlobals<Format>());
}

function positive(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= INTEGER_MAX) return value;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${INTEGER_MAX}.`);
}

function oneLine(text: string): string {
  if (text.trim() !== '' && text.length <= 500 && !/\p{Cc}/u.test(text)) return text;
  throw new InvalidArgumentError('It must be one line of 1 to 500 characters.');
}
