import { mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import type { Ack } from '../../../lib/kafka/log-record.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import { formatPosition } from '../../../schemas/position.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
  type TestAccountOptions,
} from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { openPillWriter } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';

type Env = Readonly<Record<string, string>>;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Null where the body is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of all routes; tests look at members
  readonly body: any;
}

/** A log, latest view, sink and API for one test. */
export interface Platform {
  /** Address of the first API. */
  readonly url: string;
  readonly namespace: Namespace;
  readonly db: Database;
  readonly account: TestAccount;
  readonly latest: TestProcess;
  readonly sink: TestProcess;
  /** Writes pills as a direct producer does. */
  write(pills: readonly PillRecord[]): Promise<readonly Ack[]>;
  /** Position after the last written pill. */
  end(): string;
  /** Waits until history has all written pills; the account must have access to history. */
  waitUntilStored(): Promise<void>;
  /** Starts a further API. @returns its address */
  startApi(env: Env): Promise<string>;
  /** Gets a path, by default from the first API with the key of the account. */
  ask(
    path: string,
    of?: { readonly headers?: Env; readonly key?: string; readonly base?: string },
  ): Promise<Answer>;
  close(): Promise<void>;
}

export async function openPlatform(
  of: {
    readonly settings?: Parameters<typeof createNamespace>[0];
    /** Institutional by default. */
    readonly account?: TestAccountOptions;
    /** Environment of the API, in addition to the namespace's. */
    readonly env?: Env;
  } = {},
): Promise<Platform> {
  const namespace = await createNamespace(of.settings);
  const writer = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  const account = await createTestAccount(db, namespace, of.account ?? { tier: 'institutional' });
  const apis: TestProcess[] = [];
  const offsets = new Map<number, number>();
  const end = () => formatPosition(namespace.settings.epoch, offsets);

  const startApi: Platform['startApi'] = async (env) => {
    const port = String(await getPort());
    const own = { ...namespace.env, API_PORT: port, ...env };
    const api = await startProcess('gateway/api/main.js', [], own);
    apis.push(api);
    await api.ready();
    const base = `http://127.0.0.1:${port}`;
    // The key is cached from now on, however busy PostgreSQL is with other tests.
    await waitFor('the key to be known', async () => {
      const headers = { 'x-api-key': account.key };
      const { statusCode, body } = await request(`${base}/api/account`, { headers });
      await body.dump();
      return statusCode === 200;
    });
    return base;
  };
  const latest = await startProcess('pipelines/main.js', ['latest'], namespace.env);
  const sink = await startProcess('pipelines/main.js', ['analytics'], namespace.env);
  const close = async () => {
    for (const { child } of [latest, sink]) child.kill('SIGCONT');
    await Promise.all([...apis, sink, latest].map((process) => process.stop()));
    await writer.close();
    await db.destroy();
  };
  const ready = Promise.all([startApi(of.env ?? {}), latest.ready(), sink.ready()]);
  const [first] = await ready.catch(async (error) => {
    await close();
    throw error;
  });

  const ask: Platform['ask'] = async (to, { headers, key = account.key, base = first } = {}) => {
    const answer = await request(`${base}${to}`, { headers: { 'x-api-key': key, ...headers } });
    const text = await answer.body.text();
    const isJson = String(answer.headers['content-type']).includes('json');
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text,
      body: isJson ? JSON.parse(text) : null,
    };
  };
  return {
    url: first,
    namespace,
    db,
    account,
    latest,
    sink,
    end,
    startApi,
    ask,
    close,
    async write(pills) {
      const acks = await writer.write(pills);
      for (const { partition, offset } of acks) offsets.set(partition, offset);
      return acks;
    },
    async waitUntilStored() {
      const until = end();
      await waitFor('history to be complete', async () => {
        const { status, text } = await ask(`/api/pills?until=${until}&limit=1`);
        return status === 200 || text;
      });
    },
  };
}

/** Writes a file of rules for `VENUE_RULES`. @returns its path */
export async function venueRulesFile(rules: object): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-rules-'));
  const file = path.join(folder, 'rules.json');
  await writeFile(file, JSON.stringify(rules));
  return file;
}
