// The register over a real PostgreSQL that can be taken away; sockets are those of the model.
import { randomBytes } from 'node:crypto';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import { openQuickPool, type QuickPool } from '../../../lib/postgres/quick-pool.ts';
import {
  COUNTED_WRITES,
  CROWDED_LOOKS,
  PROCESS_ALIVE_S,
  WRITE_EVERY_MS,
} from '../../../lib/stream-sessions/pace.ts';
import { createSessionRegistry } from '../../../lib/stream-sessions/registry.ts';
import {
  endStreamSession,
  listStreamSessions,
} from '../../../lib/stream-sessions/stream-sessions.ts';
import { createTestAccount, openTestDatabase } from '../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../lib/testing/namespace.ts';
import { type EngineProxy, openProxy } from '../../../lib/testing/proxy.ts';
import { waitFor } from '../../../lib/testing/wait.ts';
import { framesOf } from '../testing/client.ts';
import { createModel, type FakeSocket } from '../testing/model.ts';
import { openRegister, type Register } from './register.ts';

const CONNECTIONS_MAX = 3;

let namespace: Namespace;
let db: Database;
let proxy: EngineProxy;
const warnings: string[] = [];
const log = pino({ level: 'info' }, { write: (line) => void warnings.push(JSON.parse(line).msg) });
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  proxy = await openProxy(namespace.engines.postgresUrl);
});

afterEach(async () => {
  proxy.set('', 'open');
  for (const stop of stops.splice(0)) await stop();
  warnings.length = 0;
});

afterAll(async () => {
  await proxy?.close();
  await db?.destroy();
});

/** A stream process, as far as the register sees it. */
function startProcess(poolName = 'register') {
  const pool: QuickPool = openQuickPool({
    ...{ url: proxy.url, namespace: namespace.name, name: poolName, log, timeoutMs: 2_000 },
    connectionsMax: 1,
  });
  const registry = createSessionRegistry(randomBytes(8).toString('hex'), pool, CONNECTIONS_MAX);
  const register: Register = openRegister(registry, log);
  const model = createModel();
  Object.assign(model.house, { onClosed: register.closed });
  stops.push(async () => {
    await register.close();
    await pool.close();
  });
  return {
    register,
    /** @param openedAt in µs: the model's own clock stands still */
    open(accountId: string, openedAt = 0): FakeSocket {
      const socket = model.connect(1e9);
      Object.assign(socket.connection!, { openedAt });
      const member = { ...socket.connection!.member, accountId, connectionsMax: CONNECTIONS_MAX };
      socket.connection!.member = member;
      register.opened(socket.connection!);
      return socket;
    },
  };
}

const newAccount = async () =>
  (await createTestAccount(db, namespace, { tier: 'institutional' })).id;
const sessionOf = ({ connection }: FakeSocket) => connection!.session;

function listed(accountId: string, sockets: readonly FakeSocket[]) {
  const wanted = sockets.map(sessionOf).toSorted();
  return waitFor('the list', async () => {
    const { sessions } = await listStreamSessions(db, accountId);
    const found = sessions.map(({ session }) => session).toSorted();
    return found.join() === wanted.join() || `${found} instead of ${wanted}`;
  });
}

describe('a socket', () => {
  test('is on the list while it is open, and ends when its owner asks for it', async () => {
    const account = await newAccount();
    const { open } = startProcess();
    const [staying, leaving, ended] = [open(account), open(account), open(account)];
    await listed(account, [staying, leaving, ended]);
    leaving.connection!.closed();
    expect(await endStreamSession(db, account, sessionOf(ended))).toBe(true);
    await listed(account, [staying]);
    expect(ended.closed).toEqual({ code: 4504, reason: 'taken_over' });
    expect(staying.closed).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  test('of a process that leaves is on no list', async () => {
    const account = await newAccount();
    const { open, register } = startProcess();
    await listed(account, [open(account)]);
    await register.close();
    await listed(account, []);
  });
});

test('what could not be written is written later, and that is said once', async () => {
  const account = await newAccount();
  const { open } = startProcess('register-away');
  const [first, second] = [open(account), open(account)];
  await listed(account, [first, second]);
  proxy.set('register-away', 'cut');
  await waitFor('that it is noticed', () => warnings.includes('sessions cannot be written down'));
  first.connection!.closed();
  const third = open(account);
  const never = open(account);
  never.connection!.closed();
  // Some more writes fail meanwhile: without one that goes through, the process is on no list.
  await listed(account, []);
  // As where another server answers next, without our last rows.
  await db.deleteFrom('stream_sessions').where('account_id', '=', account).execute();
  proxy.set('register-away', 'open');
  await listed(account, [second, third]);
  await waitFor('that it is back', () => warnings.includes('sessions are written down again'));
  expect(warnings.filter((line) => line === 'sessions cannot be written down')).toHaveLength(1);
  expect([second, third].map(({ closed }) => closed)).toEqual([undefined, undefined]);
});

describe('an account over its limit in all', () => {
  test('loses its newest sockets, wherever they are; the oldest stay', async () => {
    const account = await newAccount();
    const [one, two] = [startProcess(), startProcess()];
    const oldest = [one.open(account), two.open(account), one.open(account)];
    await listed(account, oldest);
    const newest = [one.open(account, 1_000_000), two.open(account, 2_000_000)];
    await waitFor('the end of the newest', () =>
      newest.every(({ closed }) => closed !== undefined),
    );
    await listed(account, oldest);
    for (const socket of newest) {
      expect(socket.closed).toEqual({ code: 4508, reason: 'connection_limit' });
      expect(framesOf(socket.frames, 'error')).toMatchObject([{ code: 'connection_limit' }]);
    }
    expect(oldest.map(({ closed }) => closed)).toEqual([undefined, undefined, undefined]);
  });

  test('loses none for the ghosts of a process that died', async () => {
    const account = await newAccount();
    const dying = startProcess('register-dying');
    const ghosts = Array.from({ length: CONNECTIONS_MAX }, () => dying.open(account));
    await listed(account, ghosts);
    // As after kill -9: it neither writes nor leaves.
    proxy.set('register-dying', 'cut');
    await waitFor('its last write', () => warnings.length > 0);
    const { open } = startProcess();
    const back = Array.from({ length: CONNECTIONS_MAX }, () => open(account));
    await listed(account, back);
    expect(back.map(({ closed }) => closed)).toEqual(back.map(() => undefined));
  });
});

test('the last look at a crowd comes when no ghost of the first is counted any more', () => {
  const countedMs = COUNTED_WRITES * WRITE_EVERY_MS;
  expect((CROWDED_LOOKS - 1) * WRITE_EVERY_MS).toBeGreaterThanOrEqual(countedMs);
  expect(PROCESS_ALIVE_S * 1_000).toBeGreaterThan(countedMs);
});
