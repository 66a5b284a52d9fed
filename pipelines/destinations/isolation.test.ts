// Destinations that hang, refuse, change, or are delivered to by two processes.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPepper } from '../../domain/access/pepper.ts';
import { createSeal } from '../../domain/access/sealing.ts';
import { sealSecrets } from '../../domain/destinations/destination.ts';
import { makePill } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { type DestinationFixture, openDestinationFixture } from './testing/destination-fixture.ts';

let fixture: DestinationFixture;
let first: TestProcess;

beforeAll(async () => {
  fixture = await openDestinationFixture();
  first = await fixture.start();
});
afterAll(() => fixture?.close());

const somePills = (count: number) => Array.from({ length: count }, () => makePill());

test('one destination that hangs and one that is refused delay no other, and their owners see why', async () => {
  const asked: string[] = [];
  const hanging = createServer((request) => {
    asked.push(request.url ?? '');
    request.resume();
  });
  await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = hanging.address() as AddressInfo;
    const hung = await fixture.add({ settings: { endpoint: `http://127.0.0.1:${port}` } });
    const refused = await fixture.add({ secrets: { secret_access_key: 'wrong' } });
    const cursors = await fixture.write(somePills(50));
    // Both hold a piece that cannot be delivered before the third begins.
    await waitFor('the hanging request', () => asked.length > 0);
    await waitFor(
      'the refusal',
      async () => (await fixture.row(refused.id)).failing_since !== null,
    );
    const good = await fixture.add();
    cursors.push(...(await fixture.write(somePills(50))));
    await fixture.waitForPills(good.bucket, cursors);
    expect(fixture.manifests(hung.bucket)).toEqual([]);
    const row = await waitFor('the attempt', () =>
      fixture.db
        .selectFrom('destination_attempts')
        .selectAll()
        .where('destination_id', '=', refused.id)
        .executeTakeFirst(),
    );
    expect(row).toMatchObject({ outcome: 'failed', reason: 'refused', status: 403 });
    expect(row.detail).toContain('SignatureDoesNotMatch');
    expect((await fixture.row(good.id)).failing_since).toBeNull();
    // The platform is at fault for neither.
    for (const { id } of [hung, refused, good]) {
      expect((await fixture.row(id)).fault_since).toBeNull();
    }

    // A changed credential takes effect at once: the wait after a failure ends.
    const pepper = readPepper(fixture.namespace.env.KEY_PEPPER_FILE!);
    await fixture.db
      .updateTable('destinations')
      .set({
        sealed: sealSecrets(createSeal(pepper), fixture.s3.credentials, refused.id),
        version: sql<number>`version + 1`,
      })
      .where('id', '=', refused.id)
      .execute();
    await fixture.waitForPills(refused.bucket, cursors);
    await waitFor(
      'the recovery',
      async () => (await fixture.row(refused.id)).failing_since === null,
    );
    const { detail, ...shown } = JSON.parse(JSON.stringify(await fixture.row(refused.id)));
    expect(JSON.stringify(shown) + detail).not.toContain(fixture.s3.credentials.secret_access_key);
    expect(first.output()).not.toContain(fixture.s3.credentials.secret_access_key);
    await fixture.db.deleteFrom('destinations').where('id', '=', hung.id).execute();
  } finally {
    hanging.closeAllConnections();
    hanging.close();
  }
}, 600_000);

test('of two processes one delivers; a process that was paused past its lease changes nothing afterwards', async () => {
  const second = await fixture.start();
  const { bucket, id } = await fixture.add();
  const cursors = await fixture.write(somePills(100));
  await fixture.waitForPills(bucket, cursors);
  const owner = (await fixture.row(id)).owner;
  const line = `"destinationId":"${id}","msg":"a destination is delivered to"`;
  const paused = [first, second].find((one) => one.output().includes(line))!;
  paused.child.kill('SIGSTOP');
  cursors.push(...(await fixture.write(somePills(100))));
  await fixture.waitForPills(bucket, cursors);
  const taken = await fixture.row(id);
  expect(taken.owner).not.toBe(owner);
  const before = fixture.manifests(bucket);
  paused.child.kill('SIGCONT');
  cursors.push(...(await fixture.write(somePills(100))));
  await fixture.waitForPills(bucket, cursors);
  expect((await fixture.row(id)).owner).toBe(taken.owner);
  expect(fixture.manifests(bucket).slice(0, before.length)).toEqual(before);
  const found = fixture.cursors(bucket);
  expect(found.length).toBe(new Set(found).size);
  await second.stop();
}, 600_000);

test('when the tier ends, the destination ends, and an audit entry says so', async () => {
  const { db } = fixture;
  const { bucket, id } = await fixture.add();
  const before = await fixture.write(somePills(20));
  await fixture.waitForPills(bucket, before);
  await db
    .updateTable('subscriptions')
    .set({ tier: 'pro' })
    .where('account_id', '=', fixture.account.id)
    .execute();
  await waitFor('the end', async () => (await fixture.row(id)).paused_by === 'entitlement');
  const [entry] = await db
    .selectFrom('audit_log')
    .selectAll()
    .where('target', '=', id)
    .where('action', '=', 'destination.ended')
    .execute();
  expect(entry).toMatchObject({ actor: 'system', account_id: fixture.account.id });
  await waitFor('the lease to be released', async () => (await fixture.row(id)).owner === null);
}, 300_000);
