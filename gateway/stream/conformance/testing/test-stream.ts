import type { Tier } from '../../../../domain/access/tiers.ts';
import { createTestAccount, openTestDatabase } from '../../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../../testing/namespace.ts';
import type { TestProcess } from '../../../../testing/process.ts';
import { type EngineProxy, openProxy } from '../../../../testing/proxy.ts';
import { startStream } from '../../testing/start-stream.ts';
import { enter } from './enter.ts';
import type { HandshakeShape, RawClient } from './raw-client.ts';

/** A stream process of the test, and an account that may use it. */
export interface TestStream {
  readonly namespace: Namespace;
  readonly process: TestProcess;
  readonly url: string;
  readonly port: number;
  /** Key of an institutional account. */
  readonly key: string;
  /** The proxy between the process and PostgreSQL. */
  readonly proxy: EngineProxy;
  newKey(tier: Tier): Promise<string>;
  /** Opens a WebSocket with the key. @throws when the connection is refused */
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
  const { stream: process, url } = await startStream({
    ...namespace.env,
    ...env,
    DATABASE_URL: proxy.url,
  });
  const port = Number(new URL(url).port);
  const enterWith = (handshake: HandshakeShape = {}) =>
    enter(port, { ...handshake, headers: { 'X-API-Key': key, ...handshake.headers } });
  // The key is cached from now on, however busy PostgreSQL is with other tests.
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
