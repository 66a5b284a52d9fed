import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { newId } from '../access/id.ts';
import { readAudit, writeAudit } from './audit.ts';
import { type ChainChecked, createChainCheck, exportAudit, verifyAudit } from './audit-chain.ts';
import { AUDIT_KEPT_DAYS, pruneOld } from './retention.ts';

let namespace: DatabaseNamespace;
let db: Database;

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});

afterAll(async () => {
  await db?.destroy();
});

const DETAIL = {
  z: [1, 2.5, 1e-7, 1e21, -0.1],
  a: { 'quote"\\': 'tab\t\u0001 \u2028 株', b: null, aa: true, é: 1 },
};

function write(accountId: string | null, action: string, detail: object = DETAIL) {
  return writeAudit(db, { accountId, actor: 'user:usr_a', action, target: 'key_a', detail });
}

/** An account with five entries. @returns its id, and the ids of the entries */
async function fiveEntries(): Promise<{ account: string; ids: readonly string[] }> {
  const account = newId('acc');
  for (const n of [1, 2, 3, 4, 5]) await write(account, `thing.done${n}`);
  const entries = await readAudit(db, account, { limit: 10 });
  return { account, ids: entries.map(({ id }) => id).reverse() };
}

async function linesOf(account: string | null): Promise<string[]> {
  const lines: string[] = [];
  await exportAudit(db, account, (line) => void lines.push(line));
  return lines;
}

function checkLines(lines: readonly string[]): ChainChecked {
  const check = createChainCheck();
  for (const line of lines) check.add(line);
  return check.end();
}

test('an export is canonical JSON that holds the entries, and both ends of the chain fit', async () => {
  const { account, ids } = await fiveEntries();
  const lines = await linesOf(account);
  const entries = lines.map((line) => JSON.parse(line));
  expect(entries.map(({ id }) => String(id))).toEqual(ids);
  expect(entries[0]).toMatchObject({ account, action: 'thing.done1', detail: DETAIL });
  expect(lines[0]).toContain('"detail":{"a":{"aa":true,"b":null,"quote\\"\\\\":');
  expect(entries[0].previous).toBe('0'.repeat(64));
  expect(entries[4].previous).toBe(entries[3].hash);
  const head = { id: ids[4], hash: entries[4].hash };
  expect(await verifyAudit(db, account)).toEqual({
    kind: 'intact',
    entries: 5,
    from: '0'.repeat(64),
    head,
  });
  expect(checkLines(lines)).toMatchObject({ kind: 'intact', entries: 5, head });
});

test('entries written side by side, in long transactions too, make one chain per account', async () => {
  const accounts = [newId('acc'), newId('acc'), null];
  const before = (await linesOf(null)).length;
  await Promise.all(
    Array.from({ length: 60 }, (_, n) =>
      db.transaction().execute(async (tx) => {
        const accountId = accounts[n % 3]!;
        await sql`SELECT pg_sleep(${(n % 5) / 1_000})`.execute(tx);
        for (const action of ['a.first', 'a.second']) {
          await writeAudit(tx, { accountId, actor: 'system', action, detail: { n } });
        }
      }),
    ),
  );
  for (const account of accounts) {
    const entries = account === null ? before + 40 : 40;
    expect(await verifyAudit(db, account)).toMatchObject({ kind: 'intact', entries });
  }
});

test('a transaction that is rolled back leaves no gap', async () => {
  const { account } = await fiveEntries();
  const undone = db.transaction().execute(async (tx) => {
    await writeAudit(tx, { accountId: account, actor: 'system', action: 'a.undone' });
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await write(account, 'a.next');
  expect(await verifyAudit(db, account)).toMatchObject({ kind: 'intact', entries: 6 });
});

describe('in the database, the first entry that does not fit is named:', () => {
  const at = (ids: readonly string[], n: number) => sql`WHERE id = ${ids[n - 1]}`;
  const cases: [string, (ids: readonly string[]) => ReturnType<typeof sql>, RegExp][] = [
    [
      'a changed action',
      (ids) => sql`UPDATE audit_log SET action = 'x' ${at(ids, 3)}`,
      /3.*changed/,
    ],
    ['a changed time', (ids) => sql`UPDATE audit_log SET at = now() ${at(ids, 4)}`, /4.*changed/],
    [
      'a changed detail with a renewed hash',
      (ids) => sql`UPDATE audit_log l SET detail = '{}', hash = sha256(convert_to(audit_content(
        ROW(l.id, l.at, l.account_id, l.actor, l.action, l.target, l.address, '{}'::jsonb,
          l.previous, l.hash)::audit_log), 'UTF8')) ${at(ids, 2)}`,
      /3.*does not follow/,
    ],
    ['a deleted entry', (ids) => sql`DELETE FROM audit_log ${at(ids, 2)}`, /3.*does not follow/],
    ['the oldest deleted', (ids) => sql`DELETE FROM audit_log ${at(ids, 1)}`, /before.*2.*missing/],
    ['the newest deleted', (ids) => sql`DELETE FROM audit_log ${at(ids, 5)}`, /after.*4.*missing/],
    [
      'an entry moved to another account',
      (ids) => sql`UPDATE audit_log SET account_id = 'acc_x' ${at(ids, 3)}`,
      /4.*does not follow/,
    ],
  ];
  test.each(cases)('%s', async (_, change, reason) => {
    const { account, ids } = await fiveEntries();
    await change(ids).execute(db);
    const found = await verifyAudit(db, account);
    expect(found).toMatchObject({ kind: 'broken' });
    // The pattern names entries by their place; the reason has their ids.
    const text = ids.reduce(
      (sofar, id, n) => sofar.replace(new RegExp(`entry ${id}\\b`, 'gi'), `entry ${n + 1}`),
      (found as { reason: string }).reason,
    );
    expect(text).toMatch(reason);
  });

  test('all deleted', async () => {
    const { account } = await fiveEntries();
    await sql`DELETE FROM audit_log WHERE account_id = ${account}`.execute(db);
    expect(await verifyAudit(db, account)).toMatchObject({ kind: 'broken' });
  });
});

test.each([
  [
    'a changed byte',
    (lines: string[]) => lines.with(2, lines[2]!.replace('done3', 'done9')),
    /changed/,
  ],
  ['a line left out', (lines: string[]) => lines.toSpliced(2, 1), /does not follow/],
  ['two lines swapped', (lines: string[]) => lines.with(1, lines[2]!).with(2, lines[1]!), /follow/],
  ['a line cut off', (lines: string[]) => lines.with(4, lines[4]!.slice(0, -9)), /Line 5/],
  ['a line that is not ours', (lines: string[]) => lines.with(0, '{}'), /Line 1/],
] as const)('in an export, %s is found', async (_, change, reason) => {
  const lines = await linesOf((await fiveEntries()).account);
  const found = checkLines(change(lines));
  expect(found).toMatchObject({ kind: 'broken', reason: expect.stringMatching(reason) });
});

test('retention deletes the oldest entries, and the chain continues from its anchor', async () => {
  const account = newId('acc');
  const old = sql`now() - make_interval(days => ${AUDIT_KEPT_DAYS + 1})`;
  for (const action of ['a.old1', 'a.old2', 'a.old3']) {
    await sql`INSERT INTO audit_log (account_id, actor, action, at)
      VALUES (${account}, 'system', ${action}, ${old})`.execute(db);
  }
  await write(account, 'a.kept1');
  await write(account, 'a.kept2');
  await Promise.all([pruneOld(db, { batchRows: 2 }), pruneOld(db, { batchRows: 2 })]);
  await pruneOld(db);
  const entries = await readAudit(db, account, { limit: 10 });
  expect(entries.map(({ action }) => action)).toEqual(['a.kept2', 'a.kept1']);
  const found = await verifyAudit(db, account);
  expect(found).toMatchObject({ kind: 'intact', entries: 2 });
  expect((found as { from: string }).from).not.toBe('0'.repeat(64));
  // One more deletion by hand is no retention.
  await sql`DELETE FROM audit_log WHERE account_id = ${account} AND action = 'a.kept1'`.execute(db);
  expect(await verifyAudit(db, account)).toMatchObject({ kind: 'broken' });
});

test('of each chain the oldest entries go, however many chains cannot give any', async () => {
  const old = sql`now() - make_interval(days => ${AUDIT_KEPT_DAYS + 1})`;
  const insert = (account: string | null, action: string, at: ReturnType<typeof sql>) =>
    sql`INSERT INTO audit_log (account_id, actor, action, at)
      VALUES (${account}, 'system', ${action}, ${at})`.execute(db);
  // Young entries come first in the table: more than a call looks at.
  const young = Array.from({ length: 5 }, () => newId('acc'));
  for (const account of young) {
    await insert(account, 'a.young', sql`now()`);
    await insert(account, 'a.behind', old);
  }
  const due = newId('acc');
  for (const action of ['a.old1', 'a.old2']) await insert(due, action, old);
  await insert(due, 'a.kept', sql`now()`);
  expect(await pruneOld(db, { batchRows: 2 })).toMatchObject({ audit_log: 2 });
  const entries = await readAudit(db, due, { limit: 10 });
  expect(entries.map(({ action }) => action)).toEqual(['a.kept']);
  for (const account of [...young, due]) {
    expect(await verifyAudit(db, account)).toMatchObject({ kind: 'intact' });
  }
  expect(await readAudit(db, young[0]!, { limit: 10 })).toHaveLength(2);
});

test('whoever may call the function deletes no entry of the last 366 days', async () => {
  const { account } = await fiveEntries();
  for (const kept of ['0', '-1 year', '1 day']) {
    const { rows } = await sql<{ deleted: number }>`
      SELECT prune_audit(${kept}::interval, 1000) AS deleted`.execute(db);
    expect(rows).toEqual([{ deleted: 0 }]);
  }
  expect(await readAudit(db, account, { limit: 10 })).toHaveLength(5);
});
