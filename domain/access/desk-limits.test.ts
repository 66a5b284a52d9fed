import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import type { Database } from '../../lib/postgres/database.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import {
  createDatabaseNamespace,
  type DatabaseNamespace,
} from '../../testing/database-namespace.ts';
import { createMeteredCall, usedCalls, usedCallsByKey } from '../../testing/metered-call.ts';
import { waitFor } from '../../testing/wait.ts';
import type { DeskAccess, MeteredCall, MeterVerdict } from './account-access.ts';
import { newId } from './id.ts';
import { type Meter, openMeter } from './meter.ts';

let namespace: DatabaseNamespace;
let db: Database;
/** Two processes. */
let meters: Meter[] = [];

beforeAll(async () => {
  namespace = await createDatabaseNamespace();
  db = openTestDatabase(namespace);
});
afterEach(async () => {
  await Promise.all(meters.splice(0).map((meter) => meter.close()));
});
afterAll(() => db?.destroy());

function openMeters(): Meter[] {
  const { engines, name } = namespace;
  meters = ['here', 'there'].map((at) =>
    openMeter({
      databaseUrl: engines.postgresUrl,
      namespace: name,
      log: silentLog,
      name: `meter-${at}`,
      deadlineMs: 60_000,
    }),
  );
  return meters;
}

/** A call of a new desk of an account. */
async function deskOf(
  { account, ...call }: MeteredCall,
  limits: Partial<DeskAccess>,
): Promise<MeteredCall & { readonly desk: DeskAccess }> {
  const id = newId('dsk');
  const row = { id, account_id: account.id, name: id.replace('_', '-'), created_by: 'test' };
  await db.insertInto('desks').values(row).execute();
  const none = { callsPerDay: undefined, rate: undefined, connectionsMax: undefined };
  return { ...call, account, desk: { id, name: row.name, ...none, symbols: undefined, ...limits } };
}

/** Sends calls to both processes in turn. */
function take(call: MeteredCall, times: number): Promise<MeterVerdict[]> {
  const all = Array.from({ length: times }, async (_, index) => meters[index % 2]!.take(call));
  return Promise.all(all);
}

const passed = (verdicts: readonly MeterVerdict[]) =>
  verdicts.filter(({ kind }) => kind === 'granted').length;
const refusals = (verdicts: readonly MeterVerdict[]) =>
  verdicts.flatMap((verdict) => ('of' in verdict ? [`${verdict.of}: ${verdict.kind}`] : []));

test('the calls of a day of a desk are exact over processes, and touch no other desk', async () => {
  openMeters();
  const call = await createMeteredCall(db, namespace, 'institutional');
  const full = await deskOf(call, { callsPerDay: 20 });
  const other = await deskOf(call, { callsPerDay: 1_000 });
  const [ofFull, ofOther, ofNone] = await Promise.all([
    take(full, 60),
    take(other, 60),
    take(call, 10),
  ]);
  expect([passed(ofFull), passed(ofOther), passed(ofNone)]).toEqual([20, 60, 10]);
  expect(new Set(refusals(ofFull))).toEqual(new Set(['desk: quota_exceeded']));
  // What a desk was refused does not count for the account.
  await waitFor(
    'the count of the account',
    async () => (await usedCalls(db, call.account.id)) === 90,
  );
  await waitFor('the breakdown', async () => (await usedCallsByKey(db, call.account.id)) === 90);
  const rows = await db
    .selectFrom('desk_usage_days')
    .select(['desk_id', 'used'])
    .where('desk_id', 'in', [full.desk.id, other.desk.id])
    .execute();
  expect(new Map(rows.map((row) => [row.desk_id, Number(row.used)]))).toEqual(
    new Map([
      [full.desk.id, 20],
      [other.desk.id, 60],
    ]),
  );
});

test('where account and desk have a limit, the one that is reached first counts, once', async () => {
  openMeters();
  const call = await createMeteredCall(db, namespace, 'institutional', 10);
  const small = await deskOf(call, { callsPerDay: 8 });
  const large = await deskOf(call, { callsPerDay: 100 });
  const ofSmall = await take(small, 12);
  expect([passed(ofSmall), new Set(refusals(ofSmall))]).toEqual([
    8,
    new Set(['desk: quota_exceeded']),
  ]);
  const ofLarge = await take(large, 5);
  expect([passed(ofLarge), new Set(refusals(ofLarge))]).toEqual([
    2,
    new Set(['account: quota_exceeded']),
  ]);
  expect(await usedCalls(db, call.account.id)).toBe(10);
});

test('a call that is given back counts for neither', async () => {
  const [here] = openMeters();
  const call = await deskOf(await createMeteredCall(db, namespace, 'institutional'), {
    callsPerDay: 2,
  });
  expect(passed(await take(call, 3))).toBe(2);
  here!.giveBack(call);
  await waitFor('room for a call', async () => (await here!.take(call)).kind === 'granted');
  expect(await usedCalls(db, call.account.id)).toBe(2);
});

test('a desk over its rate takes nothing from its account', async () => {
  const [here] = openMeters();
  const call = await createMeteredCall(db, namespace, 'institutional');
  const account = { ...call.account, ratePerS: 1, rateBurst: 10 };
  const rate = { perS: 1, burst: 4 };
  const fast = await deskOf({ ...call, account }, { rate });
  const verdicts = await Promise.all(Array.from({ length: 20 }, async () => here!.take(fast)));
  // One more may have been refilled on a busy machine.
  expect(passed(verdicts)).toBeLessThan(10);
  expect(new Set(refusals(verdicts))).toEqual(new Set(['desk: rate_limited']));
  expect((await here!.take({ ...call, account })).kind).toBe('granted');
});
