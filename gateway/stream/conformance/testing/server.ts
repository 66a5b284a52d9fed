import type { Tier } from '../../../../lib/access/tiers.ts';
import { createTestAccount, openTestDatabase } from '../../../../lib/testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../../lib/testing/namespace.ts';
import { startProcess, type TestProcess } from '../../../../lib/testing/process.ts';
import { type EngineProxy, openProxy } from '../../../../lib/testing/proxy.ts';
import { enter } from './enter.ts';
import type { HandshakeShape, RawClient } from './raw-client.ts';

/** A stream process of the test's own, and who may use it. */
export interface TestStream {
  readonly namespace: Namespace;
  readonly process: TestProcess;
  readonly url: string;
  readonly port: number;
  /** Of an institutional account. */
  readonly key: string;
  /** Between the process and PostgreSQL. */
  readonly proxy: EngineProxy;
  newKey(tier: Tier): Promise<string>;
  /** Opens a WebSocket as a client with a key does. @throws when it is not let in */
  open(handshake?: HandshakeShape): Promise<RawClient>;
  close(): Promise<void>;
}

export async function startTestStream(
  env: Readonly<Record<string, string>> = {},
): Promise<TestStream> {
  const namespace = await createNamespace();
  const db = openTestDatabase(namespace);
  const newKey = async (tier: Tier) => (await createTestAccount(db, namespace, { tier })).key;
  const key = await newKey('institutional');
  const proxy = await openProxy(namespace.engines.postgresUrl);
  const process = await startProcess('gateway/stream/main.js', [], {
    ...namespace.env,
    ...env,
    DATABASE_URL: proxy.url,
    STREAM_PORT: '0',
  });
  await process.ready();
  const url = /"url":"(ws:[^"]+)"/.exec(process.output())![1]!;
  const port = Number(new URL(url).port);
  const enterWith = (handshake: HandshakeShape = {}) =>
    enter(port, { ...handshake, headers: { 'X-API-Key': key, ...handshake.headers } });
  // From now on the key is known, however busy PostgreSQL is with other tests.
  (await enterWith()).abort();
  return {
    ...{ namespace, process, url, port, key, proxy, newKey },
    open: enterWith,
    async close() {
      await process.stop();
      await proxy.close();
      await db.destroy();
    },
  };
}
