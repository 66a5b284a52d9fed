import { sql } from 'kysely';
import { describe, expect, type TestContext, test } from 'vitest';
import { jobsSchema } from '../../domain/webhooks/deliveries/drain-jobs.ts';
import { makePill } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { isLongRun } from '../../testing/run-length.ts';
import { waitFor } from '../../testing/wait.ts';
import { openWebhookFixture, type WebhookFixture } from './testing/webhook-fixture.ts';
import type { Received } from './testing/webhook-receiver.ts';

/** Engines of a test's own: the tests mostly wait for leases and sessions, so they run at once. */
async function openFixture({ onTestFinished }: TestContext): Promise<WebhookFixture> {
  const fixture = await openWebhookFixture();
  onTestFinished(fixture.close);
  return fixture;
}

/**
 * A message in flight at a kill is sent again when its lease is over; a slow machine takes longer.
 */
const SLOW_MS = 300_000;

/**
 * Each dispatcher process ends in a kill: one while pills are joined, one while pills are sent
 * singly.
 */
const PILLS_PER_TURN = isLongRun ? [60, 2, 40, 2, 60, 2, 40, 2] : [60, 2];

const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', '9984.T', 'BHP.AX', 'S2.T'];
const somePills = (count: number) =>
  Array.from({ length: count }, (_, n) => makePill({ symbol: SYMBOLS[n % SYMBOLS.length]! }));

/** A pill may come twice only under the same webhook-id, and then with the same bytes. */
function expectOneIdEach(deliveries: readonly Received[]): void {
  const idOf = new Map<string, string>();
  const textOf = new Map<string, string>();
  for (const { id, cursors, text } of deliveries) {
    expect(textOf.get(id) ?? text).toBe(text);
    textOf.set(id, text);
    for (const cursor of cursors) {
      expect(`${cursor} in ${idOf.get(cursor) ?? id}`).toBe(`${cursor} in ${id}`);
      idOf.set(cursor, id);
    }
  }
}

/** `prev` of every pill names the previous pill of its symbol. */
function expectChain(deliveries: readonly Received[]): void {
  const pills = new Map<string, { symbol: string; prev: string | null }>();
  for (const { body } of deliveries) {
    for (const data of body.data.pills ?? [body.data]) pills.set(data.cursor, data);
  }
  const place = (cursor: string) => cursor.split('-').map(Number) as [number, number];
  const sorted = [...pills.keys()].sort((a, b) => {
    const [[pa, oa], [pb, ob]] = [place(a), place(b)];
    return pa - pb || oa - ob;
  });
  const last = new Map<string, string>();
  for (const cursor of sorted) {
    const { symbol, prev } = pills.get(cursor)!;
    expect(`${cursor} after ${prev}`).toBe(`${cursor} after ${last.get(symbol) ?? null}`);
    last.set(symbol, cursor);
  }
}

describe.concurrent('kill -9 of the dispatcher', () => {
  // The heaviest load: this test runs first and alone, so that the others do not slow it down.
  test.sequential('repeatedly under load, few and many pills a second: nothing lost, duplicates only under the same id', async (context) => {
    const fixture = await openFixture(context);
    // One endpoint is quick, one slow, one fails at first: their pills wait in different places.
    const [quick, slow, failing] = [
      await fixture.addEndpoint(),
      await fixture.addEndpoint(),
      await fixture.addEndpoint(),
    ];
    fixture.receiver.answerWith(slow!.path, () => ({ delayMs: 700 }));
    fixture.receiver.answerWith(failing!.path, ({ count }) => ({
      status: count % 3 === 0 ? 503 : 204,
    }));
    const cursors: string[] = [];
    let dispatcher: TestProcess = await fixture.start();
    // The first process joins pills: 60 at once are more than may be in flight. Later processes
    // send pills singly that it may have sent singly.
    for (const perTurn of PILLS_PER_TURN) {
      for (let turn = 0; turn < 8; turn += 1) {
        cursors.push(...(await fixture.write(somePills(perTurn))));
        const wanted = Math.ceil(cursors.length * 0.6);
        if (turn === 5) {
          const seen = () => new Set(fixture.receiver.cursors(quick!.path)).size;
          await waitFor('some to come', () => seen() >= wanted || `${seen()}`, SLOW_MS);
          await dispatcher.kill();
        }
      }
      dispatcher = await fixture.start();
    }
    for (const { path } of [quick!, slow!, failing!]) {
      await fixture.waitForPills(path, cursors, SLOW_MS);
      expectOneIdEach(fixture.receiver.at(path));
      expectChain(fixture.receiver.at(path));
      expect(fixture.receiver.at(path).every(({ isVerified }) => isVerified)).toBe(true);
    }
    expect(fixture.receiver.at(quick!.path).some(({ type }) => type === 'pills.published')).toBe(
      true,
    );
  }, 600_000);

  test('after a message was stored and before its answer: another dispatcher retries the message', async (context) => {
    const fixture = await openFixture(context);
    const endpoint = await fixture.addEndpoint();
    // The first attempt hangs: after a second its message is stored, then the dispatcher is killed.
    fixture.receiver.answerWith(endpoint.path, ({ count }) => (count === 0 ? undefined : {}));
    const first = await fixture.start();
    const cursors = await fixture.write([makePill()]);
    await waitFor('the row', async () => {
      const rows = await fixture.db.selectFrom('webhook_deliveries').select('id').execute();
      return rows.length === 1;
    });
    await first.kill();
    await fixture.start();
    await waitFor(
      'the second attempt',
      () => fixture.receiver.at(endpoint.path).length >= 2,
      SLOW_MS,
    );
    await fixture.waitForPills(endpoint.path, cursors);
    expectOneIdEach(fixture.receiver.at(endpoint.path));
    await waitFor('nothing to wait', async () => {
      const rows = await fixture.db.selectFrom('webhook_deliveries').select('id').execute();
      return rows.length === 0;
    });
  }, 400_000);

  test('while a worker drains: its job is freed long before the library would free it', async (context) => {
    const fixture = await openFixture(context);
    const endpoint = await fixture.addEndpoint();
    let mode: 'fail' | 'hang' | 'work' = 'fail';
    fixture.receiver.answerWith(endpoint.path, () =>
      mode === 'hang' ? undefined : { status: mode === 'fail' ? 500 : 204 },
    );
    const first = await fixture.start();
    const cursors = await fixture.write([makePill()]);
    await waitFor('the failure', () => fixture.receiver.at(endpoint.path).length >= 1);
    mode = 'hang';
    await waitFor('the drain', () => fixture.receiver.at(endpoint.path).length >= 2, SLOW_MS);
    await first.kill();
    mode = 'work';
    await fixture.start();
    await waitFor(
      'the third attempt',
      () => {
        const { length } = fixture.receiver.at(endpoint.path);
        return length >= 3 || `${length} attempts`;
      },
      SLOW_MS,
    );
    await fixture.waitForPills(endpoint.path, cursors);
    expectOneIdEach(fixture.receiver.at(endpoint.path));
  }, 400_000);

  test('before the first heartbeat of its workers: jobs of workers that nothing else names are freed', async (context) => {
    const fixture = await openFixture(context);
    const endpoint = await fixture.addEndpoint();
    fixture.receiver.answerWith(endpoint.path, ({ count }) => ({
      status: count === 0 ? 500 : 204,
    }));
    const first = await fixture.start();
    const cursors = await fixture.write([makePill()]);
    const jobs = sql.id(jobsSchema(fixture.namespace.name));
    await waitFor('the job of the next attempt', async () => {
      const { rows } = await sql`SELECT id FROM ${jobs}.jobs WHERE locked_by IS NULL`.execute(
        fixture.db,
      );
      return rows.length === 1;
    });
    await first.kill();
    for (const table of ['_private_jobs', '_private_job_queues']) {
      await sql`UPDATE ${jobs}.${sql.id(table)} SET locked_by = 'worker-gone',
        locked_at = now() - interval '1 minute'`.execute(fixture.db);
    }
    await fixture.start();
    await waitFor(
      'the queue to be free',
      async () => {
        const { rows } = await sql`SELECT FROM ${jobs}._private_job_queues
          WHERE locked_by = 'worker-gone'`.execute(fixture.db);
        return rows.length === 0;
      },
      SLOW_MS,
    );
    await fixture.waitForPills(endpoint.path, cursors);
    expectOneIdEach(fixture.receiver.at(endpoint.path));
  }, 400_000);
});

describe.concurrent('two dispatchers', () => {
  test('share the work; after one is killed the other continues; nothing lost, duplicates only under the same id', async (context) => {
    const fixture = await openFixture(context);
    const endpoint = await fixture.addEndpoint();
    const [first, second] = [await fixture.start(), await fixture.start()];
    const attempts = async ({ opsUrl }: TestProcess) => {
      const text = await (await fetch(`${opsUrl}/metrics`)).text();
      const line = /^pillole_webhook_attempts_total\{outcome="delivered"\} (\d+)$/m.exec(text);
      return Number(line?.[1] ?? 0);
    };
    const cursors: string[] = [];
    await waitFor('both dispatchers to deliver', async () => {
      cursors.push(...(await fixture.write(somePills(12))));
      return (await attempts(first)) > 0 && (await attempts(second)) > 0;
    });
    await first.kill();
    for (let turn = 0; turn < 20; turn += 1) cursors.push(...(await fixture.write(somePills(12))));
    await fixture.waitForPills(endpoint.path, cursors, SLOW_MS);
    expectOneIdEach(fixture.receiver.at(endpoint.path));
    expectChain(fixture.receiver.at(endpoint.path));
  }, 400_000);

  test('one frozen past its session and thawed: it causes no duplicate under another id', async (context) => {
    const fixture = await openFixture(context);
    const endpoint = await fixture.addEndpoint();
    const first = await fixture.start();
    const cursors = await fixture.write(somePills(30));
    await fixture.waitForPills(endpoint.path, cursors, SLOW_MS);
    fixture.receiver.answerWith(endpoint.path, () => ({ delayMs: 1_000 }));
    // Joined pills are in its memory and in the table, so its next writes must be fenced. Pills that
    // a busy machine hands over in small batches are sent singly: then more pills are written.
    await waitFor('joined pills', async () => {
      const rows = await fixture.db.selectFrom('webhook_joined').select('partition').execute();
      const seen = new Set(fixture.receiver.cursors(endpoint.path)).size;
      if (rows.length === 0 && seen === cursors.length) {
        cursors.push(...(await fixture.write(somePills(120))));
      }
      return rows.length > 0;
    });
    first.child.kill('SIGSTOP');
    // All earlier pills may have been delivered when their rows were seen.
    cursors.push(...(await fixture.write(somePills(30))));
    const second = await fixture.start();
    await waitFor(
      'the second to deliver',
      async () => {
        const text = await (await fetch(`${second.opsUrl}/metrics`)).text();
        return /^pillole_webhook_attempts_total\{outcome="delivered"\} [1-9]/m.test(text);
      },
      SLOW_MS,
    );
    first.child.kill('SIGCONT');
    cursors.push(...(await fixture.write(somePills(60))));
    await fixture.waitForPills(endpoint.path, cursors, SLOW_MS);
    expectOneIdEach(fixture.receiver.at(endpoint.path));
  }, 400_000);

  test('a rolling restart under load loses nothing, and duplicates only under the same id', async (context) => {
    const fixture = await openFixture(context);
    const endpoint = await fixture.addEndpoint();
    const [first, second] = [await fixture.start(), await fixture.start()];
    const cursors: string[] = [];
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) cursors.push(...(await fixture.write(somePills(6))));
    })();
    await first.stop();
    await fixture.start();
    await second.stop();
    await fixture.start();
    isWriting = false;
    await writing;
    await fixture.waitForPills(endpoint.path, cursors, SLOW_MS);
    expectOneIdEach(fixture.receiver.at(endpoint.path));
    expectChain(fixture.receiver.at(endpoint.path));
  }, 400_000);
});
