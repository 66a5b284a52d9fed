import { newId } from '../domain/access/id.ts';
import { hashKey, keyHint, newKey } from '../domain/access/key-format.ts';
import { readPepper } from '../domain/access/pepper.ts';
import { SCOPES, type Scope } from '../domain/access/scopes.ts';
import type { Tier } from '../domain/access/tiers.ts';
import { silentLog } from '../lib/log/log.ts';
import { type Database, openDatabase } from '../lib/postgres/database.ts';
import type { DatabaseNamespace } from './database-namespace.ts';

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
  /** High by default, so that other tests never reach it. */
  readonly ratePerS?: number;
  readonly rateBurst?: number;
}

/** Opens the database of a namespace; the test ends it with `destroy()`. */
export function openTestDatabase({ name, engines }: DatabaseNamespace): Database {
  return openDatabase({
    url: engines.postgresUrl,
    namespace: name,
    name: 'test',
    log: silentLog,
    // The server accepts a connection late on a busy machine.
    timeouts: { connectMs: 60_000, statementMs: 5_000 },
  });
}

/** Inserts an account with a subscription and one key. */
export async function createTestAccount(
  db: Database,
  namespace: DatabaseNamespace,
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
      hash: hashKey(key, readPepper(namespace.engines.pepperFile).current().bytes),
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
