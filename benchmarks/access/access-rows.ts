import { sql } from 'kysely';
import { newId } from '../../lib/access/id.ts';
import { hashKey, keyHint, newKey } from '../../lib/access/key-format.ts';
import type { Tier } from '../../lib/access/tiers.ts';
import { silentLog } from '../../lib/log.ts';
import { openDatabase, schemaName } from '../../lib/postgres/database.ts';

/** A key that may be used, and its row. */
export interface MadeKey {
  readonly key: string;
  readonly id: string;
  readonly accountId: string;
}

/** The rows that say who may read: written in SQL, past the API, which hears nothing of it. */
export interface AccessRows {
  /** An account of a tier whose limits the operator has lifted, with one key. */
  addLiftedAccount(tier: Tier): Promise<MadeKey>;
  /** Takes all keys but this one out of the table; the API goes on knowing them. */
  keepOnly(made: MadeKey): Promise<void>;
  /** Makes a row that of another, new key of an account. @returns the new key */
  turnInto(rowId: string, accountId: string): Promise<string>;
  /** Gives a row its old key back. */
  turnBack(made: MadeKey): Promise<void>;
  /**
   * Fills the table up to `total` keys, ten to an account without a daily limit; `known` of them,
   * amid the others and spread over the accounts, are real keys. @returns these
   */
  fill(total: number, known: number): Promise<string[]>;
  /** Keys in the table. */
  count(): Promise<number>;
  /** Calls that were counted for an account, all told. */
  used(accountId: string): Promise<number>;
  /** Removes the benchmark's schema. */
  close(): Promise<void>;
}

/** Above what any machine asks for in a day. */
const CALLS_LIFTED = 2_000_000_000;
const RATE_LIFTED = 1_000_000;
const KEYS_PER_ACCOUNT = 10;
/** Rows of one statement: below the time-out of statements, also on a slow disk. */
const CHUNK_ROWS = 10_000;

export function openAccessRows(url: string, namespace: string, pepper: Buffer): AccessRows {
  const db = openDatabase({ url, namespace, name: 'bench', log: silentLog, lazyCommits: true });
  const hashOf = (key: string) => hashKey(key, pepper);
  let filled = 0;

  const addFiller = async (upTo: number) => {
    for (let from = filled; from < upTo; from += CHUNK_ROWS) {
      const to = Math.min(upTo, from + CHUNK_ROWS);
      await addAccounts(from, to);
      await sql`
        INSERT INTO api_keys (id, account_id, hash, hint, name, scopes, created_by)
        SELECT 'key_' || lpad(i::text, 12, '0'),
          'acc_' || lpad((i / ${KEYS_PER_ACCOUNT}::integer)::text, 12, '0'),
          sha256(convert_to(random()::text || i, 'UTF8')), 'pil_live_…fill', 'filler',
          '{read,stream}', 'system'
        FROM generate_series(${from}::integer, ${to - 1}::integer) AS i`.execute(db);
    }
    filled = Math.max(filled, upTo);
  };
  const addAccounts = async (fromKey: number, toKey: number) => {
    const series = sql`generate_series(
      ${Math.floor(fromKey / KEYS_PER_ACCOUNT)}::integer,
      ${Math.floor((toKey - 1) / KEYS_PER_ACCOUNT)}::integer) AS i`;
    await sql`
      INSERT INTO accounts (id, name)
      SELECT 'acc_' || lpad(i::text, 12, '0'), 'Filler' FROM ${series}
      ON CONFLICT DO NOTHING`.execute(db);
    await sql`
      INSERT INTO subscriptions
        (account_id, tier, status, period_end, provider, provider_reference)
      SELECT 'acc_' || lpad(i::text, 12, '0'), 'institutional', 'active',
        now() + interval '30 days', 'test', 'sub_' || i
      FROM ${series}
      ON CONFLICT DO NOTHING`.execute(db);
  };
  const addKey = async (accountId: string): Promise<MadeKey> => {
    const key = newKey();
    const id = newId('key');
    await db
      .insertInto('api_keys')
      .values({
        ...{ id, account_id: accountId, hash: hashOf(key), hint: keyHint(key), name: 'bench' },
        ...{ scopes: ['read'], created_by: 'system' },
      })
      .execute();
    return { key, id, accountId };
  };
  /** In this schema alone: the API is not to be told of filler, nor that its keys are gone. */
  const tellNobody = async () => {
    await sql`ALTER TABLE subscriptions DISABLE TRIGGER subscriptions_access`.execute(db);
    await sql`ALTER TABLE api_keys DISABLE TRIGGER api_keys_access`.execute(db);
  };
  /** So that neither happens amid a measurement. */
  const settle = async () => {
    for (const table of ['accounts', 'subscriptions', 'api_keys']) {
      await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db);
      await sql`VACUUM (ANALYZE) ${sql.table(table)}`.execute(db);
    }
    // Not everyone may ask for one; where it takes longer than a statement may, it goes on.
    await sql`CHECKPOINT`.execute(db).catch(() => undefined);
  };

  return {
    async addLiftedAccount(tier) {
      const id = newId('acc');
      await db
        .insertInto('accounts')
        .values({
          ...{ id, name: `Bench ${tier}`, rate_per_s: RATE_LIFTED, rate_burst: RATE_LIFTED },
          calls_per_day: tier === 'institutional' ? null : CALLS_LIFTED,
        })
        .execute();
      await db
        .insertInto('subscriptions')
        .values({
          ...{ account_id: id, tier, status: 'active' },
          period_end: new Date(Date.now() + 30 * 86_400_000),
          ...{ provider: 'test', provider_reference: newId('sub') },
        })
        .execute();
      return addKey(id);
    },
    async keepOnly({ id }) {
      await tellNobody();
      await db.deleteFrom('api_keys').where('id', '!=', id).execute();
      await settle();
    },
    async turnInto(rowId, accountId) {
      const key = newKey();
      await db
        .updateTable('api_keys')
        .set({ account_id: accountId, hash: hashOf(key) })
        .where('id', '=', rowId)
        .execute();
      return key;
    },
    async turnBack({ id, accountId, key }) {
      await db
        .updateTable('api_keys')
        .set({ account_id: accountId, hash: hashOf(key) })
        .where('id', '=', id)
        .execute();
    },
    async fill(total, known) {
      await tellNobody();
      const missing = total - (await countKeys()) - known;
      const upTo = filled + missing;
      await addFiller(filled + Math.floor(missing / 2));
      const accounts = Math.floor(filled / KEYS_PER_ACCOUNT);
      const made: string[] = [];
      for (let i = 0; i < known; i += 1) {
        const account = Math.floor((i * accounts) / known);
        made.push((await addKey(`acc_${String(account).padStart(12, '0')}`)).key);
      }
      await addFiller(upTo);
      await settle();
      return made;
    },
    count: countKeys,
    async used(accountId) {
      const { n } = await db
        .selectFrom('usage_days')
        .select((eb) => eb.fn.sum<string | null>('used').as('n'))
        .where('account_id', '=', accountId)
        .executeTakeFirstOrThrow();
      return Number(n);
    },
    async close() {
      await sql`DROP SCHEMA IF EXISTS ${sql.id(schemaName(namespace))} CASCADE`
        .execute(db)
        .finally(() => db.destroy());
    },
  };

  async function countKeys(): Promise<number> {
    const { n } = await db
      .selectFrom('api_keys')
      .select((eb) => eb.fn.countAll<string>().as('n'))
      .executeTakeFirstOrThrow();
    return Number(n);
  }
}
