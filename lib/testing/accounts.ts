import { SCOPES, type Scope } from '../access/access.ts';
import { newId } from '../access/id.ts';
import { hashKey, keyHint, newKey } from '../access/key-format.ts';
import { readPepper } from '../access/pepper.ts';
import type { Tier } from '../access/tiers.ts';
import { silentLog } from '../log.ts';
import { type Database, openDatabase } from '../postgres/database.ts';
import type { Namespace } from './namespace.ts';

export interface TestAccount {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
}

export interface TestAccountOptions {
  /** null = an account without a subscription. */
  readonly tier: Tier | null;
  readonly scopes?: readonly Scope[];
  readonly allowCidrs?: readonly string[];
  readonly expiresAt?: Date;
  readonly callsPerDay?: number;
  /** High by default, so that a test of something else never meets it. */
  readonly ratePerS?: number;
  readonly rateBurst?: number;
}

/** Opens the database of a namespace; the test ends it with `destroy()`. */
export function openTestDatabase({ name, engines }: Namespace): Database {
  return openDatabase({ url: engines.postgresUrl, namespace: name, name: 'test', log: silentLog });
}

/** Makes an account with a subscription and one key, by its rows alone. */
export async function createTestAccount(
  db: Database,
  namespace: Namespace,
  options: TestAccountOptions,
): Promise<TestAccount> {
  const id = newId('acc');
  const key = newKey();
  const keyId = newId('key');
  await db
    .insertInto('accounts')
    .values({
      id,
      name: 'Test',
      rate_per_s: options.ratePerS ?? 100_000,
      rate_burst: options.rateBurst ?? 100_000,
      calls_per_day: options.callsPerDay ?? null,
    })
    .execute();
  if (options.tier !== null) {
    await db
      .insertInto('subscriptions')
      .values({
        account_id: id,
        tier: options.tier,
        status: 'active',
        period_end: new Date(Date.now() + 30 * 86_400_000),
        provider: 'test',
        provider_reference: newId('sub'),
      })
      .execute();
  }
  await db
    .insertInto('api_keys')
    .values({
      id: keyId,
      account_id: id,
      hash: hashKey(key, readPepper(namespace.env.KEY_PEPPER_FILE!)),
      hint: keyHint(key),
      name: 'test',
      scopes: [...(options.scopes ?? SCOPES)],
      allow_cidrs: [...(options.allowCidrs ?? [])],
      expires_at: options.expiresAt ?? null,
      created_by: 'system',
    })
    .execute();
  return { id, key, keyId };
}
