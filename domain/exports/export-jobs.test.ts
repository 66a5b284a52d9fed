// Claims of several processes at a time, over one PostgreSQL.
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { createDatabaseNamespace } from '../../testing/database-namespace.ts';
import { waitFor } from '../../testing/wait.ts';
import { newId } from '../access/id.ts';
import { createExportClaims, type ExportBounds } from './export-jobs.ts';

const BOUNDS: ExportBounds = {
  ...{ openOfAccountMax: 10, dailyOfAccountMax: 20, openMax: 200, allBytesMax: 1e9 },
  ...{ keptS: 86_400, leaseS: 600, attemptsMax: 3 },
};
const ACCOUNTS = 3;
const EXPORTS_OF_ACCOUNT = 4;
const ROUNDS = 20;
const PROCESSES = 9;

let db: Database;
let accounts: string[];

beforeAll(async () => {
  const namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
  const made = Array.from({ length: ACCOUNTS }, () =>
    createTestAccount(db, namespace, { tier: 'institutional' }),
  );
  accounts = (await Promise.all(made)).map(({ id }) => id);
});
afterAll(() => db?.destroy());

/** Each account has some exports that wait, the oldest first. */
beforeEach(async () => {
  await sql`DELETE FROM exports`.execute(db);
  for (const account of accounts) {
    for (let n = 0; n < EXPORTS_OF_ACCOUNT; n += 1) {
      await sql`INSERT INTO exports
          (id, account_id, created_by, request, epoch, position, rows_estimated, created_at)
        VALUES (${newId('exp')}, ${account}, 'test', '{}', 'k', 'k:', 0,
          now() - make_interval(hours => ${EXPORTS_OF_ACCOUNT - n}))`.execute(db);
    }
  }
});

type Claims = ReturnType<typeof createExportClaims>;
const processOf = (n: number) => createExportClaims(db, BOUNDS, `process-${n}`);
const endLeases = () => sql`UPDATE exports SET owner_until = now() - interval '1 s'`.execute(db);

test('claims at the same time never take two exports of an account', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const claimed = await Promise.all(
      Array.from({ length: PROCESSES }, (_, n) => processOf(n).claim()),
    );
    const taken = claimed.flatMap((row) => row?.account_id ?? []);
    expect(taken.sort()).toEqual([...accounts].sort());
    await sql`UPDATE exports SET state = 'waiting', owner = NULL, attempts = 0`.execute(db);
  }
});

test('a process that has lost its lease cannot continue beside the one that has it', async () => {
  const [first, second] = [processOf(1), processOf(2)];
  const lost = (await first.claim())!;
  await endLeases();
  // As long as no claim has given the lease up, its process may renew it.
  expect(await first.progress(lost.id, { rows: 1, bytes: 1 })).toBe(true);
  await endLeases();
  const taken = (await second.claim())!;
  expect([taken.id, taken.attempts]).toEqual([lost.id, 2]);
  expect(await first.progress(lost.id, { rows: 2, bytes: 2 })).toBe(false);
  expect(await second.progress(lost.id, { rows: 0, bytes: 0 })).toBe(true);
});

test('a lease that is renewed while another process claims stays the only one', async () => {
  const lost = (await processOf(1).claim())!;
  // Otherwise the claim would take an older export, of another account.
  await sql`DELETE FROM exports WHERE account_id <> ${lost.account_id}`.execute(db);
  await endLeases();
  let claiming: ReturnType<Claims['claim']> | undefined;
  await db.transaction().execute(async (renewing) => {
    await sql`UPDATE exports SET owner_until = now() + interval '1 h'
      WHERE id = ${lost.id} AND owner = 'process-1'`.execute(renewing);
    const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(renewing);
    claiming = processOf(2).claim();
    const isClaimed = claiming.then(() => true);
    await waitFor('the claim to wait, or to be over', async () => {
      const blocked = sql`SELECT FROM pg_stat_activity
        WHERE ${rows[0]!.pid} = ANY (pg_blocking_pids(pid))`.execute(db);
      return Promise.race([isClaimed, blocked.then((of) => of.rows.length > 0)]);
    });
  });
  expect(await claiming).toBeUndefined();
  expect(await processOf(1).progress(lost.id, { rows: 1, bytes: 1 })).toBe(true);
});

test('a lease that ends in the last attempt fails the export', async () => {
  const { id } = (await processOf(1).claim())!;
  await sql`UPDATE exports SET attempts = ${BOUNDS.attemptsMax} WHERE id = ${id}`.execute(db);
  await endLeases();
  const next = await processOf(2).claim();
  expect(next!.id).not.toBe(id);
  const { rows } = await sql`SELECT state, problem, owner FROM exports WHERE id = ${id}`.execute(
    db,
  );
  expect(rows).toEqual([{ state: 'failed', problem: 'export_interrupted', owner: null }]);
});
