import { open, readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { AUDIT_PAGE_MAX, readAudit } from '../../domain/accounts/audit.ts';
import {
  type ChainChecked,
  createChainCheck,
  exportAudit,
  verifyAudit,
} from '../../domain/accounts/audit-chain.ts';
import { findAccount } from '../../domain/accounts/operator.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { AdminError, withAdminSession } from './admin-session.ts';
import { positive } from './option-values.ts';
import { print } from './print.ts';

/** Adds `audit`, which shows, exports and verifies the log. */
export function addAuditCommands(program: Command): void {
  const audit = program
    .command('audit')
    .argument('<account>')
    .description('Shows who changed what, newest first; "platform" shows changes of no account')
    .option('--limit <count>', `at most ${AUDIT_PAGE_MAX}`, positive, 50)
    .option('--before <entry>', 'continue after the last entry of the previous list', positive)
    .action(
      async (account: string, options: { limit: number; before?: number }, command: Command) => {
        const before = options.before === undefined ? undefined : String(options.before);
        const page = { limit: options.limit, before };
        print(await withAdminSession(({ db }) => readAuditOf(db, account, page)), command);
      },
    );
  audit
    .command('export <account> <file>')
    .description('Writes the audit log of an account to a new file as NDJSON with its hash chain')
    .action(async (account: string, file: string, _: unknown, command: Command) =>
      print(await withAdminSession(({ db }) => exportTo(db, account, file)), command),
    );
  audit
    .command('verify <account>')
    .description('Checks the hash chain of an account in the database')
    .option('--export <file>', 'an earlier export, which the database must still continue')
    .action(async (account: string, options: { export?: string }, command: Command) =>
      print(await withAdminSession(({ db }) => verify(db, account, options.export)), command),
    );
  audit
    .command('verify-file <file>')
    .description('Checks the hash chain of an export, without a database')
    .action(async (file: string, _: unknown, command: Command) =>
      print(resultOf(checkLines(await readLines(file))), command),
    );
}

/** @throws AdminError for an account that is not in the audit log */
async function readAuditOf(
  db: Database,
  account: string,
  page: Parameters<typeof readAudit>[2],
): ReturnType<typeof readAudit> {
  if (account === 'platform') return readAudit(db, null, page);
  const accountId = await findAccount(db, account);
  // The log survives the account.
  const entries = await readAudit(db, accountId ?? account, page);
  if (accountId !== undefined || entries.length > 0) return entries;
  // An empty page after the last entry of an erased account is not an error.
  const newest = await readAudit(db, account, { limit: 1 });
  if (newest.length > 0) return entries;
  throw new AdminError(
    `There is no account ${account}, and no audit entry of one: see "account list".`,
  );
}

/** @returns null for the platform */
async function ownerOf(db: Database, account: string): Promise<string | null> {
  await readAuditOf(db, account, { limit: 1 });
  return account === 'platform' ? null : ((await findAccount(db, account)) ?? account);
}

async function exportTo(db: Database, account: string, file: string) {
  const owner = await ownerOf(db, account);
  const handle = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new AdminError(
      error.code === 'EEXIST'
        ? `${file} exists already: name a new file.`
        : `${file} cannot be written (${error.code}): name another file.`,
    );
  });
  const check = createChainCheck();
  try {
    await exportAudit(db, owner, async (line) => {
      check.add(line);
      await handle.write(`${line}\n`);
    });
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { account, file, ...resultOf(check.end()) };
}

async function verify(db: Database, account: string, file: string | undefined) {
  const owner = await ownerOf(db, account);
  const earlier = file === undefined ? undefined : checkLines(await readLines(file));
  if (earlier?.kind === 'broken') throw new AdminError(`The export is broken. ${earlier.reason}`);
  let isContinued = earlier === undefined || earlier.entries === 0;
  const found = await verifyAudit(db, owner, (line) => {
    isContinued ||= line.endsWith(`,"hash":"${earlier!.head.hash}"}`);
  });
  const result = resultOf(found);
  // Retention may have deleted exactly the entries of the export.
  if (isContinued || earlier!.head.hash === result.from) return { account, ...result };
  throw new AdminError(
    `Entry ${earlier!.head.id}, the newest of ${file}, is not in the database: the log was replaced, ` +
      'the export is older than the retention, or it is of another account.',
  );
}

function checkLines(lines: readonly string[]): ChainChecked {
  const check = createChainCheck();
  for (const line of lines) check.add(line);
  return check.end();
}

/** Only line feeds separate lines: texts may contain U+2028. */
async function readLines(file: string): Promise<readonly string[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new AdminError(`${file} cannot be read (${error.code}): name an export.`);
  });
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** @throws AdminError naming the first broken entry */
function resultOf(found: ChainChecked) {
  if (found.kind === 'broken') throw new AdminError(`The hash chain is broken. ${found.reason}`);
  const { entries, from, head } = found;
  return { entries, from, newest: head.id, hash: head.hash, chain: 'intact' };
}
