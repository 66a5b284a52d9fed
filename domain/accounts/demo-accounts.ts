import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { sql, type Transaction } from 'kysely';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import { DEFAULT_SCOPES } from '../access/scopes.ts';
import { TIER_NAMES, TIERS, type Tier } from '../access/tiers.ts';
import { PERIOD_MS } from './billing-events.ts';
import type { Keys } from './keys.ts';
import { TEST_PROVIDER } from './test-billing.ts';

export type DemoKeys = Readonly<Record<Tier, string>>;

/** `file` is JSON of tier to key. */
export type DemoOptions = { readonly db: Database; readonly keys: Keys; readonly file: string };

const SYSTEM = { actor: 'system' } as const;

/** Address of the user of a demo account; `.invalid` never receives mail (RFC 2606). */
export function demoEmail(tier: Tier): string {
  return `demo-${tier}@pillole.invalid`;
}

/**
 * Creates the demo accounts if there are none, and ensures that `file` holds a live key of each: if
 * the file is missing or belongs to another database, demo keys are revoked and new ones written.
 * @returns the new keys, to be shown; undefined if the file was valid
 */
export function ensureDemoKeys(options: DemoOptions): Promise<DemoKeys | undefined> {
  // The file is written under the lock: of two concurrent starts, the second one finds it.
  return underLock(options.db, async () => {
    const made = (await createUnlessThere(options)) ?? (await replaceUnlessGood(options));
    if (made !== undefined) {
      writeFileAtomically(options.file, `${JSON.stringify(made, undefined, 2)}\n`);
    }
    return made;
  });
}

/** The demo account of a tier; undefined if there is none. */
export async function findDemoAccount(db: Database, tier: Tier): Promise<string | undefined> {
  return (await readDemoAccounts(db)).get(tier);
}

/** The work runs on other connections, so the pool needs at least two. */
function underLock<T>(db: Database, work: () => Promise<T>): Promise<T> {
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(hashtext('demo of ' || current_schema()))`.execute(tx);
    return work();
  });
}

async function createUnlessThere({ db, keys }: DemoOptions): Promise<DemoKeys | undefined> {
  const accounts = await db.transaction().execute(async (tx) => {
    if ((await readDemoAccounts(tx)).size > 0) return undefined;
    const made = new Map<Tier, string>();
    for (const tier of TIER_NAMES) made.set(tier, await insertAccount(tx, tier));
    return made;
  });
  return accounts === undefined ? undefined : createKeysOf(keys, accounts);
}

async function replaceUnlessGood({ db, keys, file }: DemoOptions): Promise<DemoKeys | undefined> {
  const accounts = await readDemoAccounts(db);
  // If one was closed and erased, there is no complete file to write.
  if (accounts.size < TIER_NAMES.length) return undefined;
  const written = await readFile(file, 'utf8').then(parseKeys, () => undefined);
  let good = written !== undefined;
  for (const [tier, accountId] of accounts) {
    good &&= (await keys.recognise(accountId, written?.[tier] ?? '')) !== undefined;
  }
  if (good) return undefined;
  for (const accountId of accounts.values()) await keys.revokeAll({ ...SYSTEM, accountId });
  return createKeysOf(keys, accounts);
}

async function createKeysOf(
  keys: Keys,
  accounts: ReadonlyMap<Tier, string>,
): Promise<DemoKeys | undefined> {
  const made: Partial<Record<Tier, string>> = {};
  for (const [tier, accountId] of accounts) {
    const created = await keys.create({
      ...SYSTEM,
      accountId,
      name: 'demo',
      scopes: [...DEFAULT_SCOPES, 'exports'],
    });
    // The operator suspended the account, or its subscription has ended: there are no keys to show.
    if (created.kind !== 'ok') return undefined;
    made[tier] = created.key;
  }
  return made as DemoKeys;
}

async function readDemoAccounts(
  db: Database | Transaction<Tables>,
): Promise<ReadonlyMap<Tier, string>> {
  const rows = await db
    .selectFrom('users')
    .select(['email', 'account_id'])
    .where('email', 'in', TIER_NAMES.map(demoEmail))
    .execute();
  const accounts = new Map<Tier, string>();
  for (const tier of TIER_NAMES) {
    const row = rows.find(({ email }) => email === demoEmail(tier));
    if (row !== undefined) accounts.set(tier, row.account_id);
  }
  return accounts;
}

async function insertAccount(tx: Transaction<Tables>, tier: Tier): Promise<string> {
  const id = newId('acc');
  const now = new Date();
  await tx
    .insertInto('accounts')
    .values({ id, name: `Demo ${TIERS[tier].title}` })
    .execute();
  await tx
    .insertInto('users')
    .values({
      id: newId('usr'),
      account_id: id,
      email: demoEmail(tier),
      password_hash: unknownPassword(),
      email_verified_at: now,
    })
    .execute();
  await tx
    .insertInto('subscriptions')
    .values({
      account_id: id,
      tier,
      status: 'active',
      period_end: new Date(now.getTime() + PERIOD_MS),
      provider: TEST_PROVIDER,
      provider_reference: newId('sub'),
      updated_at: now,
    })
    .execute();
  return id;
}

/** A hash that no password matches, with the form and cost of a real one, so attempts take as long. */
function unknownPassword(): string {
  const text = (bytes: number) => randomBytes(bytes).toString('base64').replaceAll('=', '');
  return `$scrypt$ln=17,r=8,p=1$${text(16)}$${text(32)}`;
}

function parseKeys(text: string): Partial<Record<Tier, string>> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null) return undefined;
    const known = Object.entries(parsed).filter(([, key]) => typeof key === 'string');
    return Object.fromEntries(known);
  } catch {
    return undefined;
  }
}
