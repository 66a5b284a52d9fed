// The sink is behind, ClickHouse is away or hangs: nothing is silently missing, nothing is a 500.
import net from 'node:net';
import getPort from 'get-port';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/clock.ts';
import { createTestAccount, type TestAccount } from '../../../lib/testing/accounts.ts';
import { makePill } from '../../../lib/testing/pills.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { openWorld, type World } from './testing/world.ts';

const SYMBOL = '7203.T';

describe('the sink is frozen', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    await world.write([makePill({ symbol: SYMBOL })]);
    await world.stored();
  });
  afterAll(() => world?.close());
  afterEach(() => world.sink.child.kill('SIGCONT'));

  const pills = (count: number) =>
    Array.from({ length: count }, () => makePill({ symbol: SYMBOL }));

  test('what it has not stored is said to be missing; then it is there, each once', async () => {
    const before = world.end();
    world.sink.child.kill('SIGSTOP');
    await world.write(pills(5));
    const asked = { symbol: SYMBOL, after: before, until: world.end() };
    const { status, body, headers } = await world.ask(asked);
    expect([status, body.code]).toEqual([503, 'history_behind']);
    expect(headers['retry-after']).toBe('1');
    // What it tells is what can be had.
    const part = await world.ask({ symbol: SYMBOL, until: body.position });
    expect(part.status).toBe(200);
    expect(part.body.data).toHaveLength(1);
    // Without an end the answer says how far it goes.
    const open = await world.ask({ symbol: SYMBOL, after: before });
    expect(open.body).toMatchObject({ data: [], position: before });
    const from = formatTimestamp(nowMicros() - 60_000_000);
    const byTime = await world.ask({ symbol: SYMBOL, from });
    expect(byTime.body.data).toHaveLength(1);
    expect(byTime.body.as_of.position).toBe(before);
    expect(byTime.body.as_of.lag_ms).toBeGreaterThan(0);
    world.sink.child.kill('SIGCONT');
    await world.stored();
    const [page] = await world.pages(asked);
    expect(page!.body.data).toHaveLength(5);
    expect(page!.body.as_of).toMatchObject({ position: world.end(), lag_ms: 0 });
  });

  test('who waits for what is not stored keeps nobody else waiting', async () => {
    const before = world.end();
    world.sink.child.kill('SIGSTOP');
    await world.write(pills(1));
    const accounts = await Promise.all(
      Array.from({ length: 4 }, () =>
        createTestAccount(world.db, world.namespace, { tier: 'pro' }),
      ),
    );
    const [{ key }, ...others] = accounts as [TestAccount, ...TestAccount[]];
    let isOver = false;
    // As many as take all places, each account as many as it may have.
    const waiting = others.flatMap((account) =>
      Array.from({ length: HISTORY_LIMITS.readingOfAccountMax }, () =>
        world.ask({ symbol: SYMBOL, until: world.end() }, {}, account.key).finally(() => {
          isOver = true;
        }),
      ),
    );
    const other = await world.ask({ symbol: SYMBOL, until: before }, {}, key);
    expect([other.status, isOver]).toEqual([200, false]);
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(503);
  });

  test('it goes on within the wait: one answer, no 503', async () => {
    world.sink.child.kill('SIGSTOP');
    await world.write(pills(3));
    const answer = world.ask({ symbol: SYMBOL, until: world.end() });
    world.sink.child.kill('SIGCONT');
    expect((await answer).status).toBe(200);
  });

  test('the end of the log has no effect: it is reached all the same', async () => {
    const [again] = pills(1);
    await world.write([again!]);
    await world.stored();
    await world.write([again!, again!, makePill({ symbol: SYMBOL, confidence: 101 })]);
    await world.stored();
    const { body } = await world.ask({ symbol: SYMBOL, until: world.end() });
    expect(body.position).toBe(world.end());
  });
});

describe('ClickHouse', () => {
  let server: net.Server;
  let hanging: string;
  const worlds: World[] = [];
  beforeAll(async () => {
    const sockets = new Set<net.Socket>();
    server = net.createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    server.on('close', () => {
      for (const socket of sockets) socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    hanging = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  });
  afterAll(async () => {
    await Promise.all(worlds.map((world) => world.close()));
    server.close();
  });

  test.each(['refuses', 'hangs'])(
    '%s: 503 with Retry-After, the newest pills go on',
    async (how) => {
      const url = how === 'hangs' ? hanging : `http://127.0.0.1:${await getPort()}`;
      // The sink of this world works: the API alone is cut off.
      const world = await openWorld({ CLICKHOUSE_URL: url });
      worlds.push(world);
      await world.write([makePill({ symbol: SYMBOL })]);
      const from = formatTimestamp(nowMicros() - 60_000_000);
      for (const query of [{ until: world.end() }, { symbol: SYMBOL, from }]) {
        const { status, body, headers, text } = await world.ask(query);
        expect([status, body.code]).toEqual([503, 'history_unavailable']);
        expect(Number(headers['retry-after'])).toBeGreaterThan(0);
        expect(text).not.toMatch(/ECONN|SELECT|node_modules/);
      }
      expect(
        (await world.ask(`/api/pills/latest?symbol=${SYMBOL}&at_least=${world.end()}`)).status,
      ).toBe(200);
      await waitFor('the two to be given back, the third to be counted', async () => {
        const { used } = (await world.ask('/api/usage')).body.today;
        return used === 1 || String(used);
      });
    },
  );
});
