import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../domain/access/id.ts';
import { issueStreamTicket } from '../../domain/access/stream-tickets.ts';
import { createSessions } from '../../domain/accounts/sessions.ts';
import type { Database } from '../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
  type TestAccountOptions,
} from '../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import type { TestProcess } from '../../testing/process.ts';
import { type EngineProxy, openProxy } from '../../testing/proxy.ts';
import { startStream } from './testing/start-stream.ts';
import { type Client, closeClients, connect, connectOnce } from './testing/stream-client.ts';

let namespace: Namespace;
let db: Database;
let proxy: EngineProxy;
let stream: TestProcess;
let url: string;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  proxy = await openProxy(namespace.engines.postgresUrl);
  ({ stream, url } = await startStream({
    ...namespace.env,
    DATABASE_URL: proxy.url,
    STREAM_ORIGINS: 'https://desk.example',
  }));
});

afterEach(closeClients);

afterAll(async () => {
  await stream?.stop();
  await proxy?.close();
  await db?.destroy();
});

const account = (options: TestAccountOptions = { tier: 'pro' }): Promise<TestAccount> =>
  createTestAccount(db, namespace, options);

/** How a connection ended: its error frame and close code. */
async function ending(client: Client) {
  const error = await client.until('error');
  const { code } = await client.closed;
  expect(error).toMatchObject({ fatal: true, close: code });
  return error;
}

describe('a credential', () => {
  test('by header: welcome carries account, tier and limits', async () => {
    const { id, key } = await account();
    const client = await connect(url, { key });
    expect(await client.until('welcome')).toMatchObject({
      account: id,
      tier: 'pro',
      limits: { connections: 20, symbols: 1_000 },
    });
    client.send({ op: 'auth', key, id: '2' });
    expect(await client.until('error')).toMatchObject({ code: 'auth_not_needed', fatal: false });
  });

  test('by first frame: later frames are queued and handled in order', async () => {
    const { key } = await account();
    // The key is cached from now on, however busy PostgreSQL is with other tests.
    await connect(url, { key });
    const client = await connect(url);
    client.send({ op: 'auth', key, id: '0' });
    for (const id of ['a', 'b', 'c']) client.send({ op: 'ping', id });
    await client.until('pong');
    await client.until('pong');
    await client.until('pong');
    const types = client.frames.map((frame) => [frame.type, (frame as { id?: string }).id]);
    expect(types).toEqual([
      ['welcome', undefined],
      ['pong', 'a'],
      ['pong', 'b'],
      ['pong', 'c'],
    ]);
  });

  test('by ticket: once, from key or session', async () => {
    const { id, keyId } = await account();
    for (const holder of [keyId, undefined]) {
      const { ticket } = await issueStreamTicket(db, { accountId: id, keyId: holder });
      const first = await connect(`${url}?ticket=${ticket}`);
      expect(await first.until('welcome')).toMatchObject({ account: id });
      const second = await connect(`${url}?ticket=${ticket}`);
      expect(await ending(second)).toMatchObject({ code: 'key_invalid', close: 4501 });
    }
  });

  test('an expired ticket is refused', async () => {
    const { id, keyId } = await account();
    const { ticket } = await issueStreamTicket(db, { accountId: id, keyId });
    await db
      .updateTable('stream_tickets')
      .set({ expires_at: new Date(Date.now() - 1) })
      .where('account_id', '=', id)
      .execute();
    expect(await ending(await connect(`${url}?ticket=${ticket}`))).toMatchObject({ close: 4501 });
  });

  test('no credential within 5 s, or another frame first, closes with 4500', async () => {
    const silent = await connect(url);
    const hasty = await connect(url);
    hasty.send({ op: 'ping' });
    expect(await ending(hasty)).toMatchObject({ code: 'auth_missing', close: 4500 });
    expect(await ending(silent)).toMatchObject({ code: 'auth_missing', close: 4500 });
  });

  test.each([
    ['nonsense', { tier: 'pro' }, 'key_invalid', 4501],
    [undefined, { tier: 'pro', expiresAt: new Date(0) }, 'key_invalid', 4501],
    [undefined, { tier: 'pro', scopes: ['read'] }, 'scope_missing', 4501],
    [undefined, { tier: 'basic' }, 'tier_too_low', 4503],
    [undefined, { tier: 'pro', allowCidrs: ['203.0.113.0/24'] }, 'address_refused', 4509],
    [undefined, { tier: null }, 'subscription_ended', 4510],
  ] as const)('%s %j ends with %s', async (given, options, code, close) => {
    const { key } = await account(options);
    const error = await ending(await connect(url, { key: given ?? key }));
    expect(error).toMatchObject({ code, close });
    if (code === 'tier_too_low') expect(error).toMatchObject({ needs: 'pro' });
  });

  test.each([
    [
      'suspended by the operator',
      'operator',
      'The invoice is unpaid.',
      (id: string) =>
        db
          .updateTable('accounts')
          .set({ status: 'suspended', suspended_reason: 'The invoice is unpaid' })
          .where('id', '=', id)
          .execute(),
    ],
    [
      'with a payment due for 8 days',
      'payment_due',
      'overdue',
      (id: string) =>
        db
          .updateTable('subscriptions')
          .set({ status: 'past_due', past_due_since: new Date(Date.now() - 8 * 86_400_000) })
          .where('account_id', '=', id)
          .execute(),
    ],
  ] as const)(
    'an account %s gets the reason and whom to write to',
    async (_, reason, why, change) => {
      const { id, key } = await account();
      await change(id);
      const error = await ending(await connect(url, { key }));
      const message = expect.stringMatching(new RegExp(`${why}.*POST /api/support`));
      expect(error).toMatchObject({ code: 'account_suspended', close: 4510, reason, message });
    },
  );

  test.each([
    ['more than 16 KiB', 5, JSON.stringify({ x: 'y'.repeat(4_000) })],
    ['more than 20 frames, empty ones too', 21, ''],
  ])(
    '%s before the credential is checked end in protocol_error, and are not kept in memory',
    async (_what, count, frame) => {
      const { key } = await account();
      proxy.set('', 'frozen');
      try {
        const client = await connect(url);
        client.send({ op: 'auth', key });
        for (let i = 0; i < count; i += 1) client.sendRaw(frame);
        expect((await ending(client)).code).toBe('protocol_error');
      } finally {
        proxy.set('', 'open');
      }
    },
  );

  test('the id of a key is not accepted as a key, even after a lookup by id', async () => {
    const { keyId } = await account();
    const refused = await ending(await connect(url, { key: keyId }));
    expect(refused).toMatchObject({ code: 'key_invalid', close: 4501 });
  });

  test('pages of the allow-list may connect', async () => {
    const { key } = await account();
    await (await connect(url, { key, origin: 'https://desk.example' })).until('welcome');
    // Of several headers, another server may read another one.
    for (const origin of [
      'https://evil.example',
      ['https://desk.example', 'https://evil.example'],
    ]) {
      const foreign = await connect(url, { key, origin });
      expect(await ending(foreign)).toMatchObject({ code: 'origin_refused', close: 4507 });
    }
  });

  test('the 21st connection of Pro gets the list of the 20 open ones', async () => {
    const { key } = await account();
    const open = await Promise.all(Array.from({ length: 20 }, () => connect(url, { key })));
    await Promise.all(open.map((client) => client.until('welcome')));
    const error = await ending(await connect(url, { key }));
    expect(error).toMatchObject({ code: 'connection_limit', close: 4508, limit: 20 });
    expect(error.sessions).toHaveLength(20);
    expect(JSON.stringify(error)).not.toContain(key);
  });
});

test('of a member, after a downgrade: the socket ends, and that of an owner stays open', async () => {
  const { id } = await account({ tier: 'institutional' });
  const open = async (role: 'owner' | 'developer') => {
    const user = newId('usr');
    const row = { id: user, account_id: id, email: `${user}@example.com`, password_hash: '', role };
    await db.insertInto('users').values(row).execute();
    const { session } = await createSessions(db).begin(user, '127.0.0.1');
    const holder = { accountId: id, keyId: undefined, sessionHash: session.hash, role };
    const client = await connect(`${url}?ticket=${(await issueStreamTicket(db, holder)).ticket}`);
    await client.until('welcome');
    return client;
  };
  const [owner, member] = [await open('owner'), await open('developer')];
  await db.updateTable('subscriptions').set({ tier: 'pro' }).where('account_id', '=', id).execute();
  expect(await ending(member)).toMatchObject({ code: 'subscription_ended', close: 4510 });
  owner.send({ op: 'ping', id: 'still' });
  expect(await owner.until('pong')).toMatchObject({ id: 'still' });
});

describe('an open socket ends', () => {
  const changes: [string, number, (of: TestAccount) => Promise<unknown>][] = [
    [
      'when its key is revoked',
      4502,
      ({ keyId }) =>
        db
          .updateTable('api_keys')
          .set({ revoked_at: new Date() })
          .where('id', '=', keyId)
          .execute(),
    ],
    [
      'when its key has expired, by the clock alone',
      4004,
      ({ keyId }) =>
        db
          .updateTable('api_keys')
          .set({ expires_at: new Date(Date.now() + 1_500) })
          .where('id', '=', keyId)
          .execute(),
    ],
    [
      'when its account is suspended',
      4510,
      ({ id }) =>
        db.updateTable('accounts').set({ status: 'suspended' }).where('id', '=', id).execute(),
    ],
    [
      'when the tier goes down to Basic',
      4503,
      ({ id }) =>
        db
          .updateTable('subscriptions')
          .set({ tier: 'basic' })
          .where('account_id', '=', id)
          .execute(),
    ],
    [
      'when the allow-list excludes its address',
      4509,
      ({ keyId }) =>
        db
          .updateTable('api_keys')
          .set({ allow_cidrs: ['203.0.113.0/24'] })
          .where('id', '=', keyId)
          .execute(),
    ],
    [
      'when a subscription cancelled to its period’s end is over, by the clock alone',
      4510,
      ({ id }) =>
        db
          .updateTable('subscriptions')
          .set({ cancel_at_period_end: true, period_end: new Date(Date.now() + 1_500) })
          .where('account_id', '=', id)
          .execute(),
    ],
  ];
  test.each(changes)('%s (%i)', async (_when, code, change) => {
    const one = await account();
    const other = await account();
    const client = await connect(url, { key: one.key });
    const untouched = await connect(url, { key: other.key });
    await Promise.all([client.until('welcome'), untouched.until('welcome')]);
    await change(one);
    expect((await client.closed).code).toBe(code);
    untouched.send({ op: 'ping' });
    await untouched.until('pong');
  });

  test('when a downgrade allows fewer connections: the newest close (4508)', async () => {
    const { id, key } = await account({ tier: 'institutional' });
    const clients: Client[] = [];
    for (let n = 0; n < 22; n += 1) {
      clients.push(await connect(url, { key }));
      await clients[n]!.until('welcome');
    }
    await db
      .updateTable('subscriptions')
      .set({ tier: 'pro' })
      .where('account_id', '=', id)
      .execute();
    const gone = await Promise.all(clients.slice(20).map((client) => client.closed));
    expect(gone.map(({ code }) => code)).toEqual([4508, 4508]);
    for (const client of clients.slice(0, 20)) {
      client.send({ op: 'ping' });
      await client.until('pong');
    }
  });

  test('not while PostgreSQL is unreachable; a new connection must retry', async () => {
    const { key } = await account();
    const client = await connect(url, { key });
    await client.until('welcome');
    const fresh = await account();
    proxy.set('', 'cut');
    try {
      const late = await ending(await connectOnce(url, { key: fresh.key }));
      expect(late).toMatchObject({ code: 'accounts_unavailable', close: 4003 });
      client.send({ op: 'ping' });
      await client.until('pong');
    } finally {
      proxy.set('', 'open');
    }
  });
});

test('the log output contains no key', () => {
  expect(stream.output()).not.toMatch(/pil_live_[0-9A-Za-z]{32}|pit_/);
});
