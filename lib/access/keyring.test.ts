import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import type { Database } from '../postgres/database.ts';
import { createTestAccount, openTestDatabase, type TestAccount } from '../testing/accounts.ts';
import { createNamespace, type Namespace } from '../testing/namespace.ts';
import { type EngineProxy, openProxy } from '../testing/proxy.ts';
import { waitFor } from '../testing/wait.ts';
import type { Identified, Keyring } from './access.ts';
import { newKey } from './key-format.ts';
import { openKeyringWith } from './keyring.ts';
import { readPepper } from './pepper.ts';
import { issueTicket } from './tickets.ts';

const HOME = '192.0.2.1';

let namespace: Namespace;
let db: Database;
let proxy: EngineProxy;
let keyring: Keyring;

beforeAll(async () => {
  namespace = await createNamespace();
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

async function open(staleMs: number): Promise<Keyring> {
  const opened = openKeyringWith(
    {
      databaseUrl: proxy.url,
      namespace: namespace.name,
      pepper: readPepper(namespace.env.KEY_PEPPER_FILE!),
      log: silentLog,
      name: 'ring',
    },
    { staleMs },
  );
  await waitFor('the keyring to be fresh', () => opened.isFresh());
  return opened;
}

const makeAccount = () => createTestAccount(db, namespace, { tier: 'pro' });

/** What became of it: the kind, or why it was refused. */
function verdict(identified: Identified): string {
  return identified.kind === 'refused' ? identified.fault : identified.kind;
}

async function ask(key: string | undefined, address = HOME): Promise<string> {
  return verdict(await keyring.identify(key, address));
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
  test('a key by a look-up, then from memory without a turn of the event loop', async () => {
    const { key, id, keyId } = await makeAccount();
    const first = keyring.identify(key, HOME);
    expect(first).toBeInstanceOf(Promise);
    expect(await first).toMatchObject({
      kind: 'key',
      key: { id: keyId, scopes: ['read', 'stream'], account: { id, status: 'active' } },
    });
    expect(keyring.identify(key, HOME)).toMatchObject({ kind: 'key' });
    expect(verdict(await keyring.identifyById(keyId, HOME))).toBe('key');
    expect(await keyring.account(id)).toMatchObject({ id, subscription: { tier: 'pro' } });
    expect(await keyring.account('acc_none')).toBeUndefined();
  });

  test('an id is no key, whatever was looked up by it', async () => {
    const { keyId } = await makeAccount();
    expect(verdict(await keyring.identifyById(keyId, HOME))).toBe('key');
    const asKey = keyring.identify(keyId, HOME);
    expect(asKey).toEqual({ kind: 'refused', fault: 'malformed' });
  });

  test('a missing and a malformed key without a look-up, refused', () => {
    expect(keyring.identify(undefined, HOME)).toEqual({ kind: 'refused', fault: 'missing' });
    for (const text of ['', 'x', `${newKey()} `, newKey().slice(0, -1), 'k'.repeat(1_000_000)]) {
      expect(keyring.identify(text, HOME)).toEqual({ kind: 'refused', fault: 'malformed' });
    }
  });

  test('unknown, revoked and expired keys, each by a look-up', async () => {
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

  test('a key until it expires, also from memory', async () => {
    const { key } = await createTestAccount(db, namespace, {
      tier: 'pro',
      expiresAt: new Date(Date.now() + 1_500),
    });
    expect(await ask(key)).toBe('key');
    await waitFor('the key to expire', async () => (await ask(key)) === 'expired');
  });

  test('a key at addresses in its allow-list alone', async () => {
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
    ['the poll alone', '-listen'],
    ['the notification alone', '-changes'],
  ])('a revocation, by %s', async (_, broken) => {
    const account = await makeAccount();
    await allRead();
    expect(await ask(account.key)).toBe('key');
    proxy.set(broken, 'cut');
    const told = new Promise<number>((resolve) => {
      keyring.onChange((id) => {
        if (id === account.id) resolve(performance.now());
      });
    });
    const revokedAtMs = await revoke(account);
    expect((await told) - revokedAtMs).toBeLessThan(1_000);
    expect(await ask(account.key)).toBe('revoked');
    expect(verdict(await keyring.identifyById(account.keyId, HOME))).toBe('revoked');
  });

  test('a revocation while the connections that carry them are frozen', async () => {
    const account = await makeAccount();
    await allRead();
    expect(await ask(account.key)).toBe('key');
    expect(proxy.freezeOpen('-listen')).toBe(1);
    expect(proxy.freezeOpen('-changes')).toBe(1);
    const revokedAtMs = await revoke(account);
    await waitFor('the refusal', async () => (await ask(account.key)) === 'revoked', 5_000);
    expect(performance.now() - revokedAtMs).toBeLessThan(1_500);
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
      await waitFor('the later one', async () => (await ask(quick.key)) === 'revoked', 2_000);
      // A few reads more, all of which see the later row and not the earlier one.
      await allRead();
      expect(await ask(slow.key)).toBe('key');
    });
    await waitFor('the earlier one', async () => (await ask(slow.key)) === 'revoked', 2_000);
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
    await waitFor('the tier', async () => (await seen()) === 'active active basic', 1_000);
    await change.set({ status: 'ended' }).execute();
    await waitFor('the end', async () => (await seen()) === 'active ended basic', 1_000);
    await db.updateTable('accounts').set({ status: 'suspended' }).where('id', '=', id).execute();
    await waitFor('the status', async () => (await seen()) === 'suspended ended basic', 1_000);
  });

  test('a revocation that overtakes a look-up', async () => {
    const other = await makeAccount();
    const account = await makeAccount();
    await allRead();
    // Its connection is open and idle; then answers are held back.
    expect(await ask(other.key)).toBe('key');
    let isTold = false;
    keyring.onChange((id) => {
      if (id === account.id) isTold = true;
    });
    proxy.set('-access', 'frozen');
    await sleep(5);
    const sinceMs = Date.now();
    const asked = ask(account.key);
    await waitFor('the look-up to be read', () => isLookedUp(sinceMs), 400);
    await revoke(account);
    await waitFor('the change', () => isTold, 400);
    proxy.set('-access', 'open');
    expect(await asked).toBe('revoked');
    expect(await ask(account.key)).toBe('revoked');
  });
});

describe('without PostgreSQL', () => {
  test('known keys go on for the stated time, unknown ones are unavailable', async () => {
    await keyring.close();
    keyring = await open(3_000);
    const known = await makeAccount();
    const unknown = await makeAccount();
    await allRead();
    expect(await ask(known.key)).toBe('key');
    proxy.set('ring', 'cut');
    expect(await ask(unknown.key)).toBe('unavailable');
    expect(await keyring.account(unknown.id)).toBe('unavailable');
    expect(await ask(known.key)).toBe('key');
    await waitFor('the keyring to be no longer fresh', () => !keyring.isFresh());
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

  test('an unknown key waits a second at most for a server that hangs', async () => {
    const { key } = await makeAccount();
    proxy.set('ring', 'frozen');
    const askedAtMs = performance.now();
    expect(await ask(key)).toBe('unavailable');
    expect(performance.now() - askedAtMs).toBeLessThan(1_500);
    proxy.set('ring', 'open');
    await waitFor('the key', async () => (await ask(key)) === 'key');
  });
});

test('of 20 that redeem one ticket at once one gets it', async () => {
  const { id, keyId } = await makeAccount();
  const { ticket } = await issueTicket(db, { accountId: id, keyId });
  const answers = await Promise.all(Array.from({ length: 20 }, () => keyring.redeemTicket(ticket)));
  const holders = answers.filter((answer) => answer !== undefined);
  expect(holders).toMatchObject([{ account: { id }, keyId }]);
  expect(await keyring.redeemTicket(ticket)).toBeUndefined();
});

/** Waits until the poll has told all that is committed now: two reads later it has. */
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

/** Whether the server has answered a look-up that it was asked after a moment of its clock. */
async function isLookedUp(sinceMs: number): Promise<boolean> {
  const { rows } = await sql<{ done: boolean | null }>`
    SELECT bool_or(state = 'idle' AND query_start > to_timestamp(${sinceMs / 1_000})) AS done
    FROM pg_stat_activity WHERE application_name = 'pillole-ring-access'`.execute(db);
  return rows[0]?.done === true;
}
