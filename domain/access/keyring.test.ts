import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase, type TestAccount } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { type EngineProxy, openProxy } from '../../testing/proxy.ts';
import { waitFor } from '../../testing/wait.ts';
import type { Identified } from './account-access.ts';
import { newKey } from './key-format.ts';
import { type Keyring, openKeyring } from './keyring.ts';
import { readPepper } from './pepper.ts';
import { SCOPES } from './scopes.ts';
import { issueStreamTicket } from './stream-tickets.ts';

const HOME = '192.0.2.1';

let namespace: DatabaseNamespace;
let db: Database;
let proxy: EngineProxy;
let keyring: Keyring;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

beforeEach(async () => {
  proxy = await openProxy(namespace.engines.postgresUrl);
  keyring = await open(60_000);
});

afterEach(async () => {
  await keyring.close();
  await proxy.close();
});

/** @param queryTimeoutMs by default so long that no query of a busy machine misses it */
async function open(staleMs: number, queryTimeoutMs = 20_000): Promise<Keyring> {
  const opened = openKeyring({
    databaseUrl: proxy.url,
    namespace: namespace.name,
    pepper: readPepper(namespace.env.KEY_PEPPER_FILE!),
    log: silentLog,
    name: 'ring',
    staleMs,
    queryTimeoutMs,
  });
  await waitFor('the keyring to be fresh', () => opened.isFresh());
  return opened;
}

const makeAccount = () => createTestAccount(db, namespace, { tier: 'pro' });

/** The kind, or why the key was refused. */
function verdict(identified: Identified): string {
  return identified.kind === 'refused' ? identified.fault : identified.kind;
}

async function ask(key: string | undefined, address = HOME): Promise<string> {
  return verdict(await keyring.identify(key, address));
}

/**
 * Waits until the answer is `to`, and holds the time at which another was last given against the
 * change: by the time of the request, so that a slow machine does not count.
 */
async function expectWithinSecond(
  to: string,
  asked: () => Promise<string>,
  changedAtMs: number,
): Promise<void> {
  let lastMs = Number.NEGATIVE_INFINITY;
  await waitFor(to, async () => {
    const askedAtMs = performance.now();
    const answer = await asked();
    if (answer === to) return true;
    lastMs = askedAtMs;
    return answer;
  });
  expect(lastMs - changedAtMs).toBeLessThan(1_000);
}

async function revoke({ keyId }: TestAccount): Promise<number> {
  await db
    .updateTable('api_keys')
    .set({ revoked_at: new Date() })
    .where('id', '=', keyId)
    .execute();
  return performance.now();
}

describe('identifies', () => {
  test('a key by a database read, then synchronously from memory', async () => {
    const { key, id, keyId } = await makeAccount();
    const first = keyring.identify(key, HOME);
    expect(first).toBeInstanceOf(Promise);
    expect(await first).toMatchObject({
      kind: 'key',
      key: { id: keyId, scopes: SCOPES, account: { id, status: 'active' } },
    });
    expect(keyring.identify(key, HOME)).toMatchObject({ kind: 'key' });
    expect(verdict(await keyring.identifyById(keyId, HOME))).toBe('key');
    expect(await keyring.account(id)).toMatchObject({ id, subscription: { tier: 'pro' } });
    expect(await keyring.account('acc_none')).toBeUndefined();
  });

  test('no key by its id, even after a lookup by that id', async () => {
    const { keyId } = await makeAccount();
    expect(verdict(await keyring.identifyById(keyId, HOME))).toBe('key');
    const asKey = keyring.identify(keyId, HOME);
    expect(asKey).toEqual({ kind: 'refused', fault: 'malformed' });
  });

  test('missing and malformed keys as refused, without a database read', () => {
    expect(keyring.identify(undefined, HOME)).toEqual({ kind: 'refused', fault: 'missing' });
    for (const text of ['', 'x', `${newKey()} `, newKey().slice(0, -1), 'k'.repeat(1_000_000)]) {
      expect(keyring.identify(text, HOME)).toEqual({ kind: 'refused', fault: 'malformed' });
    }
  });

  test('unknown, revoked and expired keys, each by a database read', async () => {
    const revoked = await makeAccount();
    await revoke(revoked);
    const expired = await createTestAccount(db, namespace, {
      tier: 'pro',
      expiresAt: new Date(Date.now() - 1_000),
    });
    expect(await ask(newKey())).toBe('unknown');
    expect(await ask(revoked.key)).toBe('revoked');
    expect(await ask(expired.key)).toBe('expired');
    expect(verdict(await keyring.identifyById('key_none', HOME))).toBe('unknown');
  });

  test('a key until it expires, even from memory', async () => {
    const { key, keyId } = await makeAccount();
    const expiresAt = new Date(Date.now() + 5_000);
    await db
      .updateTable('api_keys')
      .set({ expires_at: expiresAt })
      .where('id', '=', keyId)
      .execute();
    expect(await ask(key)).toBe('key');
    await waitFor('the key to expire', async () => (await ask(key)) === 'expired');
  });

  test('a key only at addresses in its allow-list', async () => {
    const { key } = await createTestAccount(db, namespace, {
      tier: 'pro',
      allowCidrs: ['192.0.2.0/24', '2001:db8::/32'],
    });
    expect(await ask(key, '192.0.2.7')).toBe('key');
    expect(await ask(key, '::ffff:192.0.2.7')).toBe('key');
    expect(await ask(key, '2001:db8::1')).toBe('key');
    expect(await ask(key, '198.51.100.1')).toBe('address_refused');
    expect(await ask(key, '2001:db9::1')).toBe('address_refused');
  });
});

describe('follows changes within a second', () => {
  test.each([
    ['the poll', '-listen'],
    ['the notification', '-changes'],
  ])('a revocation, by %s alone', async (_, broken) => {
    const account = await makeAccount();
    await allRead();
    expect(await ask(account.key)).toBe('key');
    proxy.set(broken, 'cut');
    const reported = new Promise<void>((resolve) => {
      keyring.onChange((id) => {
        if (id === account.id) resolve();
      });
    });
    const revokedAtMs = await revoke(account);
    await expectWithinSecond('revoked', () => ask(account.key), revokedAtMs);
    await reported;
    expect(verdict(await keyring.identifyById(account.keyId, HOME))).toBe('revoked');
  });

  test('a revocation while the connections that carry them are frozen', async () => {
    const account = await makeAccount();
    await allRead();
    expect(await ask(account.key)).toBe('key');
    expect(proxy.freezeOpen('-listen')).toBe(1);
    expect(proxy.freezeOpen('-changes')).toBe(1);
    const revokedAtMs = await revoke(account);
    await expectWithinSecond('revoked', () => ask(account.key), revokedAtMs);
  });

  test('a transaction that began first and commits last', async () => {
    proxy.set('-listen', 'cut');
    const slow = await makeAccount();
    const quick = await makeAccount();
    await allRead();
    expect(await ask(slow.key)).toBe('key');
    expect(await ask(quick.key)).toBe('key');
    await db.transaction().execute(async (tx) => {
      await tx
        .updateTable('api_keys')
        .set({ revoked_at: new Date() })
        .where('id', '=', slow.keyId)
        .execute();
      await revoke(quick);
      await waitFor('the later revocation', async () => (await ask(quick.key)) === 'revoked');
      // Further reads see the later row but not the earlier one.
      await allRead();
      expect(await ask(slow.key)).toBe('key');
    });
    const committedAtMs = performance.now();
    await expectWithinSecond('revoked', () => ask(slow.key), committedAtMs);
  });

  test('a suspended account, an ended subscription, another tier', async () => {
    const { id, key } = await makeAccount();
    expect(await ask(key)).toBe('key');
    const seen = async () => {
      const who = await keyring.identify(key, HOME);
      if (who.kind !== 'key') throw new Error(who.kind);
      const { status, subscription } = who.key.account;
      return `${status} ${subscription?.status} ${subscription?.tier}`;
    };
    const change = db.updateTable('subscriptions').where('account_id', '=', id);
    await change.set({ tier: 'basic' }).execute();
    await expectWithinSecond('active active basic', seen, performance.now());
    await change.set({ status: 'ended' }).execute();
    await expectWithinSecond('active ended basic', seen, performance.now());
    await db.updateTable('accounts').set({ status: 'suspended' }).where('id', '=', id).execute();
    await expectWithinSecond('suspended ended basic', seen, performance.now());
  });

  test('a revocation that overtakes a lookup', async () => {
    const other = await makeAccount();
    const account = await makeAccount();
    await allRead();
    // The connection is open and idle before its answers are held back.
    expect(await ask(other.key)).toBe('key');
    let isReported = false;
    keyring.onChange((id) => {
      if (id === account.id) isReported = true;
    });
    proxy.set('-access', 'frozen');
    await sleep(5);
    const sinceMs = Date.now();
    const asked = ask(account.key);
    await waitFor('the lookup to be answered', () => isLookedUp(sinceMs));
    await revoke(account);
    await waitFor('the change', () => isReported);
    proxy.set('-access', 'open');
    expect(await asked).toBe('revoked');
    expect(await ask(account.key)).toBe('revoked');
  });
});

describe('without PostgreSQL', () => {
  test('known keys are accepted for the stated time, unknown keys are unavailable', async () => {
    await keyring.close();
    // Long enough for the questions below on a busy machine.
    keyring = await open(15_000);
    const known = await makeAccount();
    const unknown = await makeAccount();
    await allRead();
    expect(await ask(known.key)).toBe('key');
    proxy.set('ring', 'cut');
    expect(await ask(unknown.key)).toBe('unavailable');
    expect(await keyring.account(unknown.id)).toBe('unavailable');
    expect(await ask(known.key)).toBe('key');
    await waitFor('the keyring not to be fresh', () => !keyring.isFresh());
    expect(keyring.isStale()).toBe(false);
    expect(await ask(known.key)).toBe('key');
    await waitFor('the stated time', () => keyring.isStale());
    expect(await ask(known.key)).toBe('unavailable');
    expect(await keyring.redeemTicket(`pit_${'a'.repeat(43)}`)).toBe('unavailable');
    proxy.set('ring', 'open');
    await waitFor('the keyring to be fresh', () => keyring.isFresh());
    expect(await ask(known.key)).toBe('key');
    await waitFor('the unknown key', async () => (await ask(unknown.key)) === 'key');
  });

  test('an unknown key waits at most a second for a hung server', async () => {
    await keyring.close();
    keyring = await open(60_000, 500);
    const { key } = await makeAccount();
    proxy.set('ring', 'frozen');
    const askedAtMs = performance.now();
    expect(await ask(key)).toBe('unavailable');
    // Far above 500 ms, for a busy machine; the server would hang for longer still.
    expect(performance.now() - askedAtMs).toBeLessThan(15_000);
    proxy.set('ring', 'open');
    await waitFor('the key', async () => (await ask(key)) === 'key');
  });
});

test('of 20 concurrent attempts to redeem a ticket, one succeeds', async () => {
  const { id, keyId } = await makeAccount();
  const { ticket } = await issueStreamTicket(db, { accountId: id, keyId });
  const answers = await Promise.all(Array.from({ length: 20 }, () => keyring.redeemTicket(ticket)));
  const holders = answers.filter((answer) => answer !== undefined);
  expect(holders).toMatchObject([{ account: { id }, keyId }]);
  expect(await keyring.redeemTicket(ticket)).toBeUndefined();
});

/** Waits for two more reads of the poll, after which everything committed so far is reported. */
async function allRead(): Promise<void> {
  const began = new Set<string>();
  await waitFor('further reads of changes', async () => {
    const { rows } = await sql<{ at: string }>`
      SELECT query_start::text AS at FROM pg_stat_activity
      WHERE application_name = 'pillole-ring-changes' AND state = 'idle'`.execute(db);
    for (const { at } of rows) began.add(at);
    return began.size >= 3;
  });
}

/** Whether the server has answered a lookup sent after `sinceMs`. */
async function isLookedUp(sinceMs: number): Promise<boolean> {
  const { rows } = await sql<{ done: boolean | null }>`
    SELECT bool_or(state = 'idle' AND query_start > to_timestamp(${sinceMs / 1_000})) AS done
    FROM pg_stat_activity WHERE application_name = 'pillole-ring-access'`.execute(db);
  return rows[0]?.done === true;
}
