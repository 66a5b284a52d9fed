// The sink is behind, ClickHouse is down or hangs: no pill is silently missing, and no answer is a
// 500.
import net from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { createTestAccount, type TestAccount } from '../../../testing/accounts.ts';
import { makePill } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { waitFor } from '../../../testing/wait.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { type HistoryFixture, openHistoryFixture } from './testing/history-fixture.ts';

const SYMBOL = '7203.T';

describe('the sink is frozen', () => {
  let fixture: HistoryFixture;
  beforeAll(async () => {
    fixture = await openHistoryFixture();
    await fixture.write([makePill({ symbol: SYMBOL })]);
    await fixture.waitUntilStored();
  });
  afterAll(() => fixture?.close());
  afterEach(() => fixture.sink.child.kill('SIGCONT'));

  const pills = (count: number) =>
    Array.from({ length: count }, () => makePill({ symbol: SYMBOL }));

  test('pills that the sink has not stored are reported missing; later each appears once', async () => {
    const before = fixture.end();
    fixture.sink.child.kill('SIGSTOP');
    await fixture.write(pills(5));
    const range = { symbol: SYMBOL, after: before, until: fixture.end() };
    const { status, body, headers } = await fixture.ask(range);
    expect([status, body.code]).toEqual([503, 'history_behind']);
    expect(headers['retry-after']).toBe('1');
    // Pills up to the position in the problem can be read.
    const part = await fixture.ask({ symbol: SYMBOL, until: body.position });
    expect(part.status).toBe(200);
    expect(part.body.data).toHaveLength(1);
    // Without `until` the answer says how far it goes.
    const open = await fixture.ask({ symbol: SYMBOL, after: before });
    expect(open.body).toMatchObject({ data: [], position: before });
    const from = formatTimestamp(nowMicros() - 60_000_000);
    const byTime = await fixture.ask({ symbol: SYMBOL, from });
    expect(byTime.body.data).toHaveLength(1);
    expect(byTime.body.as_of.position).toBe(before);
    expect(byTime.body.as_of.lag_ms).toBeGreaterThan(0);
    fixture.sink.child.kill('SIGCONT');
    await fixture.waitUntilStored();
    const [page] = await fixture.pages(range);
    expect(page!.body.data).toHaveLength(5);
    expect(page!.body.as_of).toMatchObject({ position: fixture.end(), lag_ms: 0 });
  });

  test('requests that wait for the sink do not block others', async () => {
    const before = fixture.end();
    fixture.sink.child.kill('SIGSTOP');
    await fixture.write(pills(1));
    const accounts = await Promise.all(
      Array.from({ length: 4 }, () =>
        createTestAccount(fixture.db, fixture.namespace, { tier: 'pro' }),
      ),
    );
    const [{ key }, ...others] = accounts as [TestAccount, ...TestAccount[]];
    for (const account of accounts) {
      await waitFor('the key to be known', async () => {
        return (await fixture.ask('/api/account', {}, account.key)).status === 200;
      });
    }
    let isOver = false;
    // Enough to take every turn, as many per account as it may have.
    const waiting = others.flatMap((account) =>
      Array.from({ length: HISTORY_LIMITS.activeOfAccountMax }, () =>
        fixture.ask({ symbol: SYMBOL, until: fixture.end() }, {}, account.key).finally(() => {
          isOver = true;
        }),
      ),
    );
    const other = await fixture.ask({ symbol: SYMBOL, until: before }, {}, key);
    expect([other.status, isOver]).toEqual([200, false]);
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(503);
  });

  test('the sink resumes within the wait: one answer, no 503', async () => {
    // The API waits for 3 s, in which the sink does not always store on a busy machine.
    await waitFor('an answer within the wait', async () => {
      fixture.sink.child.kill('SIGSTOP');
      await fixture.write(pills(3));
      const answer = fixture.ask({ symbol: SYMBOL, until: fixture.end() });
      fixture.sink.child.kill('SIGCONT');
      const { status, text } = await answer;
      return status === 200 || text;
    });
  });

  test('the last record has no effect: its position is still reached', async () => {
    const [again] = pills(1);
    await fixture.write([again!]);
    await fixture.waitUntilStored();
    await fixture.write([again!, again!, makePill({ symbol: SYMBOL, confidence: 101 })]);
    await fixture.waitUntilStored();
    const { body } = await fixture.ask({ symbol: SYMBOL, until: fixture.end() });
    expect(body.position).toBe(fixture.end());
  });
});

describe('ClickHouse', () => {
  let server: net.Server;
  let hanging: string;
  const worlds: HistoryFixture[] = [];
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
    await Promise.all(worlds.map((fixture) => fixture.close()));
    server.close();
  });

  test.each(['refuses', 'hangs'])(
    '%s: 503 with Retry-After; the latest pills still work',
    async (how) => {
      const url = how === 'hangs' ? hanging : `http://127.0.0.1:${await getPort()}`;
      // The sink of this fixture works; only the API is cut off.
      const fixture = await openHistoryFixture({ CLICKHOUSE_URL: url });
      worlds.push(fixture);
      await fixture.write([makePill({ symbol: SYMBOL })]);
      const from = formatTimestamp(nowMicros() - 60_000_000);
      for (const query of [{ until: fixture.end() }, { symbol: SYMBOL, from }]) {
        const { status, body, headers, text } = await fixture.ask(query);
        expect([status, body.code]).toEqual([503, 'history_unavailable']);
        expect(Number(headers['retry-after'])).toBeGreaterThan(0);
        expect(text).not.toMatch(/ECONN|SELECT|node_modules/);
      }
      await waitFor('the latest pill', async () => {
        const latest = `/api/pills/latest?symbol=${SYMBOL}&at_least=${fixture.end()}`;
        const { status, text } = await fixture.ask(latest);
        return status === 200 || text;
      });
      await waitFor('two calls to be given back and the third to be counted', async () => {
        const { used } = (await fixture.ask('/api/usage')).body.today;
        return used === 1 || String(used);
      });
    },
  );
});
