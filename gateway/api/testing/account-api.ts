import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openTestDatabase } from '../../../testing/accounts.ts';
import { createNamespace } from '../../../testing/namespace.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { createCustomer, enroll } from './customer.ts';

type Env = Readonly<Record<string, string>>;

/** An API with an outbox, so that customers can sign up. */
export type AccountApi = Awaited<ReturnType<typeof openAccountApi>>;

/** Starts an API in a namespace of its own. @param env further settings */
export async function openAccountApi(env: Env = {}) {
  const namespace = await createNamespace();
  const db = openTestDatabase(namespace);
  const outbox = await mkdtemp(path.join(os.tmpdir(), 'pillole-outbox-'));
  const apis: TestProcess[] = [];
  const close = async () => {
    await Promise.all(apis.map((api) => api.stop()));
    await db.destroy();
    await rm(outbox, { recursive: true, force: true });
  };
  /** Starts a further API. @returns its address */
  const start = async (more: Env): Promise<string> => {
    const port = await getPort();
    const url = `http://127.0.0.1:${port}`;
    const own = { API_PORT: String(port), PUBLIC_URL: url, MAIL_OUTBOX: outbox };
    const all = { ...namespace.env, ...own, ...env, ...more };
    const api = await startProcess('gateway/api/main.js', [], all);
    apis.push(api);
    await api.ready();
    return url;
  };
  const base = await start({}).catch(async (error) => {
    await close();
    throw error;
  });
  /** A customer without a session, by default of the first API. */
  const stranger = (name: string, at = base) => createCustomer(at, outbox, name);
  return {
    namespace,
    outbox,
    base,
    api: apis[0]!,
    start,
    stranger,
    /** A customer who is signed in. @param tier bought, if given */
    async customer(name: string, tier?: string) {
      const customer = stranger(name);
      await enroll(db, customer);
      if (tier !== undefined) await customer.subscribe(tier);
      return customer;
    },
    close,
  };
}
