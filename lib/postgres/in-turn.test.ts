import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestDatabase } from '../../testing/accounts.ts';
import { blockedBehind, holdRows } from '../../testing/blocked.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { waitFor } from '../../testing/wait.ts';
import { silentLog } from '../log/log.ts';
import { type Database, openDatabase } from './database.ts';
import { assertInTurn, CHANGE_TURNS, inTurn, TurnRefusedError, takeTurn } from './in-turn.ts';

let namespace: DatabaseNamespace;
let server: Database;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  server = openTestDatabase(namespace);
  db = openDatabase({
    url: namespace.engines.postgresUrl,
    namespace: namespace.name,
    name: 'in-turn',
    log: silentLog,
    connectionsMax: 3,
    timeouts: { connectMs: 60_000, statementMs: 60_000 },
  });
  const rows = ['a', 'b', 'c'].map((id) => ({ id: `acc_${id}`, name: '0' }));
  await server.insertInto('accounts').values(rows).execute();
});

afterAll(async () => {
  await db?.destroy();
  await server?.destroy();
});

const rowOf = (id: string) => sql`SELECT FROM accounts WHERE id = ${id} FOR UPDATE`;

/** A change as routes make it: a read of the locked row, then a write. */
const change = (id: string, on = db) =>
  inTurn(on, id, async (tx) => {
    const { rows } = await sql<{ name: string }>`
      SELECT name FROM accounts WHERE id = ${id} FOR UPDATE`.execute(tx);
    const name = String(Number(rows[0]!.name) + 1);
    await tx.updateTable('accounts').set({ name }).where('id', '=', id).execute();
    return Number(name);
  });

test('400 changes of one account hold one connection; others are answered meanwhile', async () => {
  const held = await holdRows(server, rowOf('acc_a'));
  const changes = Promise.allSettled(Array.from({ length: 400 }, () => change('acc_a')));
  await waitFor('the first change to wait', async () => (await blockedBehind(held)) > 0);
  // The pool has three connections, one of which waits for the row.
  for (let other = 1; other <= 20; other += 1) expect(await change('acc_b')).toBe(other);
  expect(await Promise.all([change('acc_b'), change('acc_c')])).toEqual([21, 1]);
  expect(await blockedBehind(held)).toBe(1);
  await held.release();
  // On a slow machine the last ones may have waited too long.
  const ends = (await changes).map((end) =>
    end.status === 'fulfilled' ? end.value : end.reason.name,
  );
  const made = ends.filter((end) => typeof end === 'number');
  expect(made).toEqual(Array.from({ length: Math.max(1, made.length) }, (_, index) => index + 1));
  expect(ends.slice(made.length).every((end) => end === 'TurnRefusedError')).toBe(true);
});

test('beyond the bound a change of the account is refused, and one of another is not', async () => {
  const held = await holdRows(server, rowOf('acc_b'));
  const waiting = CHANGE_TURNS.waitingOfAccountMax;
  const changes = Array.from({ length: waiting + 1 }, () => change('acc_b').catch((e) => e));
  await expect(change('acc_b')).rejects.toThrow(TurnRefusedError);
  expect(await change('acc_c')).toBeGreaterThan(0);
  await held.release();
  // On a slow machine the last ones may have waited too long.
  const [first] = await Promise.all(changes);
  expect(first).toBe(22);
});

test('if the database does not answer the first change, those that wait are refused', async () => {
  const hasty = openDatabase({
    url: namespace.engines.postgresUrl,
    namespace: namespace.name,
    name: 'hasty',
    log: silentLog,
    timeouts: { connectMs: 60_000, statementMs: 500 },
  });
  const held = await holdRows(server, rowOf('acc_a'));
  const ends = await Promise.all(
    Array.from({ length: 5 }, () => change('acc_a', hasty).catch((error: Error) => error)),
  );
  expect((ends[0] as { code?: string }).code).toBe('57014');
  for (const end of ends.slice(1)) expect(end).toBeInstanceOf(TurnRefusedError);
  await held.release();
  expect(await change('acc_a', hasty)).toBeGreaterThan(0);
  await hasty.destroy();
});

test('a failed change gives its turn on, and a lock without a turn is an error', async () => {
  const fail = () => takeTurn(db, 'acc_a', () => Promise.reject(new Error('refused')));
  const ends = await Promise.allSettled([fail(), fail(), change('acc_a')]);
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  await db.transaction().execute(async (tx) => expect(() => assertInTurn(tx)).toThrow(/inTurn/));
  await inTurn(db, 'acc_a', async (tx) => assertInTurn(tx));
});
