import { newId } from '../../domain/access/id.ts';
import { hashKey, keyHint, newKey } from '../../domain/access/key-format.ts';
import type { Pepper } from '../../domain/access/pepper.ts';
import type { Scope } from '../../domain/access/scopes.ts';
import type { Tier } from '../../domain/access/tiers.ts';
import type { Stage } from '../harness/stage.ts';

type Database = ReturnType<Stage['openDatabase']>;

/** More calls than any machine makes in a day. */
const CALLS_PER_DAY = 2_000_000_000;
const RATE_PER_S = 1_000_000;

/** Adds an account of a tier with the limits lifted, and its key with one scope. */
export async function addLiftedAccount(
  db: Database,
  tier: Tier,
  pepper: Pepper,
  scope: Scope = 'read',
) {
  const id = newId('acc');
  const calls_per_day = tier === 'institutional' ? null : CALLS_PER_DAY;
  const limits = { rate_per_s: RATE_PER_S, rate_burst: RATE_PER_S, calls_per_day };
  await db
    .insertInto('accounts')
    .values({ id, name: `Bench ${tier}`, ...limits })
    .execute();
  const period_end = new Date(Date.now() + 30 * 86_400_000);
  const provider = { provider: 'test', provider_reference: newId('sub') };
  await db
    .insertInto('subscriptions')
    .values({ account_id: id, tier, status: 'active', period_end, ...provider })
    .execute();
  const key = newKey();
  const row = {
    id: newId('key'),
    account_id: id,
    hash: hashKey(key, pepper.current().bytes),
    hint: keyHint(key),
  };
  await db
    .insertInto('api_keys')
    .values({ ...row, name: 'bench', scopes: [scope], created_by: 'system' })
    .execute();
  return { id, key };
}

export async function countCalls(db: Database, accountId: string): Promise<number> {
  const { n } = await db
    .selectFrom('usage_days')
    .select((eb) => eb.fn.sum<string | null>('used').as('n'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return Number(n);
}
