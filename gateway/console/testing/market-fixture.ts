import type { Database } from '../../../lib/postgres/database.ts';
import type { PillRecord } from '../../../schemas/pill.ts';
import {
  createTestAccount,
  openTestDatabase,
  type TestAccount,
} from '../../../testing/accounts.ts';
import { startIngest, type TestIngest } from '../../../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { makePill } from '../../../testing/pills.ts';
import { getPort } from '../../../testing/ports.ts';
import { createPoster } from '../../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';

/** All processes that the page needs, in a namespace of their own. */
export interface MarketFixture {
  /** Address of the page. */
  readonly url: string;
  readonly namespace: Namespace;
  /** The account of the demo. */
  readonly account: TestAccount;
  /** An account without streams. */
  readonly basic: TestAccount;
  /** Sends one pill. */
  send(fields: Partial<PillRecord>): Promise<void>;
  /** Starts another API, without a demo. @returns the address of its page */
  startClosedApi(): Promise<string>;
  killStream(): Promise<void>;
  startStream(): Promise<void>;
  /** Suspends the stream process: its sockets stay open, but send nothing. */
  freezeStream(): void;
  thawStream(): void;
  close(): Promise<void>;
}

/** Starts ingest, latest, stream, and an API with a demo. */
export async function openMarketFixture(): Promise<MarketFixture> {
  const namespace = await createNamespace();
  const db: Database = openTestDatabase(namespace);
  const running: TestProcess[] = [];
  const account = await createTestAccount(db, namespace, { tier: 'pro' });
  const basic = await createTestAccount(db, namespace, { tier: 'basic' });
  const streamPort = String(await getPort());
  const run = async (entry: string, args: readonly string[], env: Record<string, string>) => {
    const started = await startProcess(entry, args, { ...namespace.env, ...env });
    running.push(started);
    await started.ready();
    return started;
  };
  const runApi = async (env: Record<string, string>) => {
    const port = String(await getPort());
    const STREAM_URL = `ws://127.0.0.1:${streamPort}`;
    await run('gateway/api/main.js', [], { API_PORT: port, STREAM_URL, ...env });
    return `http://127.0.0.1:${port}/`;
  };
  // One after another, since each start takes a second of a core.
  const url = await runApi({ DEMO_ACCOUNT_ID: account.id });
  await run('pipelines/main.js', ['latest'], {});
  let stream = await run('gateway/stream/main.js', [], { STREAM_PORT: streamPort });
  const ingest: TestIngest = await startIngest(namespace);
  running.push(ingest.process);
  await ingest.process.ready();
  const poster = createPoster(ingest.url);

  return {
    url,
    account,
    basic,
    namespace,
    async send(fields) {
      await poster.post(makePill(fields));
    },
    startClosedApi: () => runApi({}),
    killStream: () => stream.kill(),
    async startStream() {
      stream = await run('gateway/stream/main.js', [], { STREAM_PORT: streamPort });
    },
    freezeStream: () => void stream.child.kill('SIGSTOP'),
    thawStream: () => void stream.child.kill('SIGCONT'),
    async close() {
      stream.child.kill('SIGCONT');
      await Promise.all(running.map((process) => process.stop()));
      await poster.close();
      await db.destroy();
    },
  };
}
