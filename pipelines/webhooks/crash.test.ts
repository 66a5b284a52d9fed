import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makePill } from '../../lib/testing/pills.ts';
import type { TestProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import type { Received } from './testing/receiver.ts';
import { openWebhookWorld, type WebhookWorld } from './testing/world.ts';

let world: WebhookWorld;

beforeEach(async () => {
  world = await openWebhookWorld();
});

afterEach(() => world?.close());

/** A message that was on its way at a kill comes when its lease is over; machines are slow. */
const SLOW_MS = 180_000;

const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', '9984.T', 'BHP.AX', 'S2.T'];
const somePills = (count: number) =>
  Array.from({ length: count }, (_, n) => makePill({ symbol: SYMBOLS[n % SYMBOLS.length]! }));

/** A pill may come twice under one webhook-id alone, and then in the same bytes. */
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

/** `prev` of every pill names the one that came before it of its symbol. */
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

describe('kill -9 of the dispatcher', () => {
  test('again and again under load, few and many pills a second: nothing lost, doubles under one id', async () => {
    // One endpoint is quick, one slow, one fails at first: their pills wait in different places.
    const [quick, slow, failing] = [
      await world.addEndpoint(),
      await world.addEndpoint(),
      await world.addEndpoint(),
    ];
    world.receiver.behave(slow!.path, () => ({ delayMs: 700 }));
    world.receiver.behave(failing!.path, ({ count }) => ({ status: count % 3 === 0 ? 503 : 204 }));
    const cursors: string[] = [];
    let dispatcher: TestProcess = await world.start();
    // The first life joins: 60 at once are more than may be on their way. Later ones send by themselves
    // what it may have sent so.
    for (const perTurn of [60, 2, 40, 2]) {
      for (let turn = 0; turn < 8; turn += 1) {
        cursors.push(...(await world.write(somePills(perTurn))));
        const wanted = Math.ceil(cursors.length * 0.6);
        if (turn === 5) {
          const seen = () => new Set(world.receiver.cursors(quick!.path)).size;
          await waitFor('some to come', () => seen() >= wanted || `${seen()}`, SLOW_MS);
          await dispatcher.kill();
        }
      }
      dispatcher = await world.start();
    }
    for (const { path } of [quick!, slow!, failing!]) {
      await world.got(path, cursors, SLOW_MS);
      expectOneIdEach(world.receiver.at(path));
      expectChain(world.receiver.at(path));
      expect(world.receiver.at(path).every(({ isVerified }) => isVerified)).toBe(true);
    }
    expect(world.receiver.at(quick!.path).some(({ type }) => type === 'pills.published')).toBe(
      true,
    );
  }, 600_000);

  test('after a message was kept and before its answer: it is tried again by another', async () => {
    const endpoint = await world.addEndpoint();
    // The first attempt hangs: after a second it is kept, then its dispatcher dies.
    world.receiver.behave(endpoint.path, ({ count }) => (count === 0 ? undefined : {}));
    const first = await world.start();
    const cursors = await world.write([makePill()]);
    await waitFor('the row', async () => {
      const rows = await world.db.selectFrom('webhook_deliveries').select('id').execute();
      return rows.length === 1;
    });
    await first.kill();
    await world.start();
    await waitFor(
      'the second attempt',
      () => world.receiver.at(endpoint.path).length >= 2,
      SLOW_MS,
    );
    await world.got(endpoint.path, cursors);
    expectOneIdEach(world.receiver.at(endpoint.path));
    await waitFor('nothing to wait', async () => {
      const rows = await world.db.selectFrom('webhook_deliveries').select('id').execute();
      return rows.length === 0;
    });
  }, 400_000);

  test('while a worker drains: its job is freed long before the library would', async () => {
    const endpoint = await world.addEndpoint();
    let mode: 'fail' | 'hang' | 'work' = 'fail';
    world.receiver.behave(endpoint.path, () =>
      mode === 'hang' ? undefined : { status: mode === 'fail' ? 500 : 204 },
    );
    const first = await world.start();
    const cursors = await world.write([makePill()]);
    await waitFor('the failure', () => world.receiver.at(endpoint.path).length === 1);
    mode = 'hang';
    await waitFor('the drain', () => world.receiver.at(endpoint.path).length === 2, SLOW_MS);
    await first.kill();
    mode = 'work';
    await world.start();
    await waitFor(
      'the third attempt',
      () => world.receiver.at(endpoint.path).length === 3,
      SLOW_MS,
    );
    await world.got(endpoint.path, cursors);
    expectOneIdEach(world.receiver.at(endpoint.path));
  }, 400_000);
});

describe('two dispatchers', () => {
  test('share the work; one killed, the other goes on; nothing lost, doubles under one id', async () => {
    const endpoint = await world.addEndpoint();
    const [first, second] = [await world.start(), await world.start()];
    const attempts = async ({ opsUrl }: TestProcess) => {
      const text = await (await fetch(`${opsUrl}/metrics`)).text();
      const line = /^pillole_webhook_attempts_total\{outcome="delivered"\} (\d+)$/m.exec(text);
      return Number(line?.[1] ?? 0);
    };
    const cursors: string[] = [];
    await waitFor('both to deliver', async () => {
      cursors.push(...(await world.write(somePills(12))));
      return (await attempts(first)) > 0 && (await attempts(second)) > 0;
    });
    await first.kill();
    for (let turn = 0; turn < 20; turn += 1) cursors.push(...(await world.write(somePills(12))));
    await world.got(endpoint.path, cursors, SLOW_MS);
    expectOneIdEach(world.receiver.at(endpoint.path));
    expectChain(world.receiver.at(endpoint.path));
  }, 400_000);

  test('one frozen past its session and thawed: what it does then doubles nothing under another id', async () => {
    const endpoint = await world.addEndpoint();
    const first = await world.start();
    const cursors = await world.write(somePills(30));
    await world.got(endpoint.path, cursors);
    world.receiver.behave(endpoint.path, () => ({ delayMs: 300 }));
    cursors.push(...(await world.write(somePills(120))));
    // Joined pills lie in its memory and in the table: what it would do next must be fenced.
    await waitFor('joined pills', async () => {
      const rows = await world.db.selectFrom('webhook_joined').select('partition').execute();
      return rows.length > 0;
    });
    first.child.kill('SIGSTOP');
    const second = await world.start();
    await waitFor(
      'the second to deliver',
      async () => {
        const text = await (await fetch(`${second.opsUrl}/metrics`)).text();
        return /^pillole_webhook_attempts_total\{outcome="delivered"\} [1-9]/m.test(text);
      },
      SLOW_MS,
    );
    first.child.kill('SIGCONT');
    cursors.push(...(await world.write(somePills(60))));
    await world.got(endpoint.path, cursors, SLOW_MS);
    expectOneIdEach(world.receiver.at(endpoint.path));
  }, 400_000);

  test('a rolling restart under load loses nothing, and doubles under one id', async () => {
    const endpoint = await world.addEndpoint();
    const [first, second] = [await world.start(), await world.start()];
    const cursors: string[] = [];
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) cursors.push(...(await world.write(somePills(6))));
    })();
    await first.stop();
    await world.start();
    await second.stop();
    await world.start();
    isWriting = false;
    await writing;
    await world.got(endpoint.path, cursors, SLOW_MS);
    expectOneIdEach(world.receiver.at(endpoint.path));
    expectChain(world.receiver.at(endpoint.path));
  }, 400_000);
});
