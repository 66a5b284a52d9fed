import type { Tier } from '../../../domain/access/tiers.ts';
import { createTestAccount, openTestDatabase } from '../../../testing/accounts.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';
import { openPillWriter, type PillWriter } from '../../../testing/pills.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type Client, closeClients, connect } from './stream-client.ts';

/** Starts a stream process on a port of its own, and waits until it is ready. */
export async function startStream(
  env: Readonly<Record<string, string>>,
): Promise<{ readonly stream: TestProcess; readonly url: string }> {
  const stream = await startProcess('gateway/stream/main.js', [], { ...env, STREAM_PORT: '0' });
  await stream.ready();
  const [, url] = /"url":"(ws:[^"]+)"/.exec(stream.output())!;
  return { stream, url: url! };
}

/** A stream process, a writer of pills, and an account that may use the stream. */
export interface StreamFixture {
  readonly namespace: Namespace;
  readonly writer: PillWriter;
  readonly stream: TestProcess;
  readonly url: string;
  readonly key: string;
  close(): Promise<void>;
}

export async function openStreamFixture(tier: Tier = 'institutional'): Promise<StreamFixture> {
  const namespace = await createNamespace();
  const writer = await openPillWriter(namespace);
  const db = openTestDatabase(namespace);
  const { key } = await createTestAccount(db, namespace, { tier });
  await db.destroy();
  const { stream, url } = await startStream(namespace.env);
  // The key is cached from now on, however busy PostgreSQL is with other tests.
  await waitFor('the key to be known', async () => {
    const { frames } = await connect(url, { key });
    await waitFor('a frame', () => frames.length > 0);
    closeClients();
    return frames[0]?.type === 'welcome';
  });
  return {
    ...{ namespace, writer, stream, url, key },
    async close() {
      await stream.stop();
      await writer.close();
    },
  };
}

/** Subscribes and waits for `live`. */
export async function subscribe(client: Client, fields: Record<string, unknown>) {
  client.send({ op: 'subscribe', ...fields });
  return client.until('live');
}
