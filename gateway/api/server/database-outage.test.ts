import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../lib/postgres/database.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { type EngineProxy, openProxy } from '../../../testing/proxy.ts';
import { waitFor } from '../../../testing/wait.ts';

let namespace: Namespace;
let db: Database;
let proxy: EngineProxy;
let api: TestProcess;
let base: string;
let pro: TestAccount;
let institutional: TestAccount;

beforeAll(async () => {
  namespace = await createNamespace();
  db = openTestDatabase(namespace);
  proxy = await openProxy(namespace.engines.postgresUrl);
  pro = await createTestAccount(db, namespace, { tier: 'pro' });
  institutional = await createTestAccount(db, namespace, { tier: 'institutional' });
  const port = await getPort();
  base = `http://127.0.0.1:${port}`;
  api = await startProcess('gateway/api/main.js', [], {
    ...namespace.env,
    API_PORT: String(port),
    DATABASE_URL: proxy.url,
  });
  await api.ready();
});

afterAll(async () => {
  proxy?.set('', 'open');
  await api?.stop();
  await proxy?.close();
  await db?.destroy();
});

async function ask(path: string, by?: string | Record<string, string>, signal?: AbortSignal) {
  const headers = typeof by === 'string' ? { 'x-api-key': by } : (by ?? {});
  const options = { headers, signal: signal ?? null };
  const { statusCode, headers: answered, body } = await request(`${base}${path}`, options);
  const text = await body.text();
  return { status: statusCode, headers: answered, text, body: JSON.parse(text) };
}

const LATEST = '/api/pills/latest?symbol=NONE.T';

test.each(['cut', 'frozen'] as const)(
  'PostgreSQL is %s: metered calls get 503, unmetered calls work, then everything recovers',
  async (how) => {
    for (const { key } of [pro, institutional]) {
      await waitFor('the key to be known', async () => (await ask(LATEST, key)).status === 404);
    }
    const unseen = await createTestAccount(db, namespace, { tier: 'institutional' });
    proxy.set('', how);
    try {
      const refused = await ask(LATEST, pro.key);
      expect([refused.status, refused.body.code]).toEqual([503, 'accounts_unavailable']);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(refused.text).not.toMatch(/ECONN|SELECT|stack|node_modules/i);
      expect((await ask(LATEST, institutional.key)).status).toBe(404);
      const stranger = await ask(LATEST, unseen.key);
      expect([stranger.status, stranger.body.code]).toEqual([503, 'accounts_unavailable']);
      expect((await ask('/api/account', institutional.key)).status).toBe(200);
      // Statements of background work may take 5 s; an answer does not wait that long.
      const inTime = () => AbortSignal.timeout(4_500);
      for (const [path, headers] of [
        ['/api/usage', { 'x-api-key': institutional.key }],
        ['/api/account', { cookie: 'pillole_session=none' }],
      ] as const) {
        const late = await ask(path, headers, inTime());
        expect([late.status, late.body.code]).toEqual([503, 'accounts_unavailable']);
        expect(Number(late.headers['retry-after'])).toBeGreaterThan(0);
      }
      await waitFor('the status to report the outage', async () => {
        const { status, body } = await ask('/api/status');
        expect(status).toBe(200);
        return body.components.accounts.state === 'down' || JSON.stringify(body.components);
      });
    } finally {
      proxy.set('', 'open');
    }
    for (const { key } of [pro, institutional, unseen]) {
      await waitFor('the recovery', async () => (await ask(LATEST, key)).status === 404);
    }
  },
);
