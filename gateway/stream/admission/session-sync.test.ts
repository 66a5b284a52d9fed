// The session sync over a real PostgreSQL behind a proxy that can cut it off; sockets are those of the model.
import { randomBytes } from 'node:crypto';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createSessionRegistry } from '../../../domain/stream-sessions/session-registry.ts';
import {
  COUNTED_WRITES,
  OVER_LIMIT_READS,
  PROCESS_ALIVE_S,
  WRITE_INTERVAL_MS,
} from '../../../domain/stream-sessions/session-timing.ts';
import {
  endStreamSession,
  listStreamSessions,
} from '../../../domain/stream-sessions/stream-sessions.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { openStatementPool, type StatementPool } from '../../../lib/postgres/statement-pool.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { type EngineProxy, openProxy } from '../../../testing/proxy.ts';
import { waitFor } from '../../../testing/wait.ts';
import { createModel, type FakeSocket } from '../testing/model.ts';
import { framesOf } from '../testing/stream-client.ts';
import { openSessionSync, type SessionSync } from './session-sync.ts';

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

/** The part of a stream process that the session sync needs. */
function startProcess(poolName = 'register') {
  const pool: StatementPool = openStatementPool({
    ...{ url: proxy.url, namespace: namespace.name, name: poolName, log, timeoutMs: 10_000 },
    connectionsMax: 1,
  });
  const registry = createSessionRegistry(randomBytes(8).toString('hex'), pool, CONNECTIONS_MAX);
  const sync: SessionSync = openSessionSync(registry, log);
  const model = createModel();
  Object.assign(model.deps, { onClosed: sync.closed });
  stops.push(async () => {
    await sync.close();
    await pool.close();
  });
  return {
    sync,
    /** @param openedAt in µs, because the clock of the model stands still */
    open(accountId: string, openedAt = 0): FakeSocket {
      const socket = model.connect(1e9);
      Object.assign(socket.connection!, { openedAt });
      const principal = {
        ...socket.connection!.principal,
        accountId,
        connectionsMax: CONNECTIONS_MAX,
      };
      socket.connection!.principal = principal;
      sync.opened(socket.connection!);
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
  test('is listed while it is open, and closes when its owner ends it', async () => {
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

  test('of a process that stops is not listed', async () => {
    const account = await newAccount();
    const { open, sync } = startProcess();
    await listed(account, [open(account)]);
    await sync.close();
    await listed(account, []);
  });
});

test('failed writes are made up for later, and are logged once', async () => {
  const account = await newAccount();
  const { open } = startProcess('register-away');
  const [first, second] = [open(account), open(account)];
  await listed(account, [first, second]);
  proxy.set('register-away', 'cut');
  await waitFor('the failure to be logged', () => warnings.includes('sessions cannot be recorded'));
  first.connection!.closed();
  const third = open(account);
  const never = open(account);
  never.connection!.closed();
  // More writes fail meanwhile: without a successful one, the process is not listed.
  await listed(account, []);
  // As after a failover to a server without our last rows.
  await db.deleteFrom('stream_sessions').where('account_id', '=', account).execute();
  proxy.set('register-away', 'open');
  await listed(account, [second, third]);
  await waitFor('the recovery to be logged', () =>
    warnings.includes('sessions are recorded again'),
  );
  expect(warnings.filter((line) => line === 'sessions cannot be recorded')).toHaveLength(1);
  expect([second, third].map(({ closed }) => closed)).toEqual([undefined, undefined]);
});

describe('an account over its limit across all processes', () => {
  test('loses its newest sockets in any process; the oldest stay', async () => {
    const account = await newAccount();
    const [one, two] = [startProcess(), startProcess()];
    const oldest = [one.open(account), two.open(account), one.open(account)];
    await listed(account, oldest);
    const newest = [one.open(account, 1_000_000), two.open(account, 2_000_000)];
    await waitFor('the newest socket to be closed', () =>
      newest.every(({ closed }) => closed !== undefined),
    );
    await listed(account, oldest);
    for (const socket of newest) {
      expect(socket.closed).toEqual({ code: 4508, reason: 'connection_limit' });
      expect(framesOf(socket.frames, 'error')).toMatchObject([{ code: 'connection_limit' }]);
    }
    expect(oldest.map(({ closed }) => closed)).toEqual([undefined, undefined, undefined]);
  });

  test('loses no socket to rows of a process that died', async () => {
    const account = await newAccount();
    const dying = startProcess('register-dying');
    const ghosts = Array.from({ length: CONNECTIONS_MAX }, () => dying.open(account));
    await listed(account, ghosts);
    // As after kill -9: the process neither writes nor removes its rows.
    proxy.set('register-dying', 'cut');
    await waitFor('the last write to fail', () => warnings.length > 0);
    const { open } = startProcess();
    const back = Array.from({ length: CONNECTIONS_MAX }, () => open(account));
    await listed(account, back);
    expect(back.map(({ closed }) => closed)).toEqual(back.map(() => undefined));
  });
});

test('rows of a dead process no longer count at the last check of the limit', () => {
  const countedMs = COUNTED_WRITES * WRITE_INTERVAL_MS;
  expect((OVER_LIMIT_READS - 1) * WRITE_INTERVAL_MS).toBeGreaterThanOrEqual(countedMs);
  expect(PROCESS_ALIVE_S * 1_000).toBeGreaterThan(countedMs);
});
