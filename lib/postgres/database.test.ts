import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { type EngineProxy, openProxy } from '../../testing/proxy.ts';
import { waitFor } from '../../testing/wait.ts';
import { silentLog } from '../log/log.ts';
import { type Database, isDatabaseAway, OutcomeUnknownError, openDatabase } from './database.ts';

let namespace: DatabaseNamespace;
let server: Database;
let proxy: EngineProxy;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  server = openTestDatabase(namespace);
});

afterAll(async () => {
  await server?.destroy();
});

beforeEach(async () => {
  proxy = await openProxy(namespace.engines.postgresUrl);
  db = openDatabase({
    url: proxy.url,
    namespace: namespace.name,
    name: 'lent',
    log: silentLog,
    connectionsMax: 1,
    // Each test waits for it; the trigger that holds a commit back takes 1 s.
    timeouts: { connectMs: 2_000, statementMs: 2_000 },
  });
});

afterEach(async () => {
  await db.destroy();
  await proxy.close();
});

/** The server process behind the lent connection. */
async function processId(on: Database = db): Promise<number> {
  const { rows } = await sql<{ id: number }>`SELECT pg_backend_pid() AS id`.execute(on);
  return rows[0]!.id;
}

/** The error of a promise that must fail. */
async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const failure = await promise.then(
    () => undefined,
    (error: Error) => error,
  );
  if (failure === undefined) throw new Error('The promise did not fail.');
  return failure;
}

test('the server ends the transaction of a frozen process after 30 s', async () => {
  const { rows } = await sql`SHOW idle_in_transaction_session_timeout`.execute(db);
  expect(rows).toEqual([{ idle_in_transaction_session_timeout: '30s' }]);
});

describe('a pool of one connection that hangs', () => {
  test('fails one statement, and the next gets a new connection', async () => {
    const before = await processId();
    expect(proxy.freezeOpen('-lent')).toBe(1);
    const failure = await failureOf(processId());
    expect(failure.message).toBe('Query read timeout');
    expect(isDatabaseAway(failure)).toBe(true);
    expect(await processId()).not.toBe(before);
  });

  test('fails a transaction, and another can then write the same row', async () => {
    const row = { id: 'acc_lent', name: 'before' };
    await server.insertInto('accounts').values(row).execute();
    const setName = (name: string, on: Pick<Database, 'updateTable'>) =>
      on.updateTable('accounts').set({ name }).where('id', '=', row.id).execute();
    const failure = await failureOf(
      db.transaction().execute(async (tx) => {
        await setName('lost', tx);
        proxy.freezeOpen('-lent');
        await sql`SELECT 1`.execute(tx);
      }),
    );
    expect(failure.message).toBe('Query read timeout');
    // The lock is released with the connection.
    await waitFor('the row', async () => (await setName('after', db)).length === 1);
    const read = server.selectFrom('accounts').select('name').where('id', '=', row.id);
    expect(await read.executeTakeFirst()).toEqual({ name: 'after' });
  });
});

describe('a change whose answer is lost', () => {
  const nameOf = async (id: string) =>
    (await server.selectFrom('accounts').select('name').where('id', '=', id).executeTakeFirst())
      ?.name;
  const insert = (id: string, on: Pick<Database, 'insertInto'> = db) =>
    on.insertInto('accounts').values({ id, name: 'kept' }).execute();

  test.each(['frozen', 'cut'] as const)('is unknown when %s during its commit', async (how) => {
    const id = `acc_commit_${how}`;
    // A deferred trigger delays the commit.
    await sql`CREATE OR REPLACE FUNCTION wait_a_moment() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$`.execute(server);
    await sql`CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON accounts DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait_a_moment()`.execute(server);
    try {
      const failing = failureOf(db.transaction().execute((tx) => insert(id, tx)));
      await waitFor('the commit', async () => {
        const { rows } = await sql`SELECT 1 FROM pg_stat_activity
          WHERE application_name = 'pillole-lent' AND query = 'commit' AND state = 'active'`.execute(
          server,
        );
        return rows.length === 1;
      });
      if (how === 'cut') proxy.set('-lent', 'cut');
      else proxy.freezeOpen('-lent');
      const failure = await failing;
      expect(failure).toBeInstanceOf(OutcomeUnknownError);
      expect(isDatabaseAway(failure)).toBe(true);
    } finally {
      await sql`DROP TRIGGER slow ON accounts`.execute(server);
    }
    // The row was written, so reporting "nothing happened" would have been wrong.
    await waitFor('the row', async () => (await nameOf(id)) === 'kept');
  });

  test('is unknown for a single statement, but not for a read', async () => {
    const id = 'acc_lone';
    await processId();
    proxy.freezeOpen('-lent');
    const failure = await failureOf(insert(id));
    expect(failure).toBeInstanceOf(OutcomeUnknownError);
    await waitFor('the row', async () => (await nameOf(id)) === 'kept');
    await processId();
    proxy.freezeOpen('-lent');
    expect(await failureOf(processId())).not.toBeInstanceOf(OutcomeUnknownError);
  });

  test('is known inside a transaction: nothing was written', async () => {
    const id = 'acc_amid';
    const failure = await failureOf(
      db.transaction().execute(async (tx) => {
        await insert(id, tx);
        proxy.freezeOpen('-lent');
        await sql`SELECT 1`.execute(tx);
      }),
    );
    expect(failure).not.toBeInstanceOf(OutcomeUnknownError);
    expect(isDatabaseAway(failure)).toBe(true);
    expect(await nameOf(id)).toBeUndefined();
  });
});

test('a failing mail server does not count as an unavailable database', () => {
  for (const code of ['EENVELOPE', 'EMESSAGE', 'EAUTH', 'ESOCKET', 'ECONNECTION', 'EDNS', 'ETLS']) {
    const error = Object.assign(new Error('Connection timeout'), { code });
    expect(isDatabaseAway(error)).toBe(false);
  }
  expect(isDatabaseAway(new Error('Connection timeout of something else'))).toBe(false);
});

test('a connection stays usable after errors from the server', async () => {
  const id = await processId();
  for (const statement of ['SELECT nonsense', 'SELECT 1 / 0', 'ROLLBACK TO SAVEPOINT none']) {
    expect(await failureOf(sql.raw(statement).execute(db))).toHaveProperty('code');
  }
  await failureOf(db.transaction().execute((tx) => sql`SELECT nonsense`.execute(tx)));
  expect(await processId()).toBe(id);
});

test('a connection that breaks in use fails only its own statement', async () => {
  const id = await processId();
  const asked = failureOf(sql`SELECT pg_sleep(3)`.execute(db));
  await waitFor('the statement to run', async () => {
    const { rows } = await sql`SELECT 1 FROM pg_stat_activity
      WHERE pid = ${id} AND state = 'active'`.execute(server);
    return rows.length === 1;
  });
  proxy.set('-lent', 'cut');
  expect(isDatabaseAway(await asked)).toBe(true);
  expect(isDatabaseAway(await failureOf(processId()))).toBe(true);
  proxy.set('-lent', 'open');
  expect(await processId()).not.toBe(id);
});

test('broken idle connections are replaced', async () => {
  const id = await processId();
  await sql`SELECT pg_terminate_backend(${id})`.execute(server);
  await waitFor('another connection', async () => (await processId()) !== id);
});
