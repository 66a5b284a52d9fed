import { openWebhookReceiver } from '../../../pipelines/webhooks/testing/webhook-receiver.ts';
import { startIngest } from '../../../testing/ingest-process.ts';
import { getPort } from '../../../testing/ports.ts';
import { createPoster } from '../../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { openAccountApi } from '../../api/testing/account-api.ts';

/** Every process that the console shows something of, in a namespace of their own. */
export async function openConsoleStack() {
  const port = String(await getPort());
  const streamUrl = `ws://127.0.0.1:${port}`;
  const receiver = await openWebhookReceiver();
  const api = await openAccountApi({ STREAM_URL: streamUrl, WEBHOOK_ALLOW_LOOPBACK: 'true' });
  const env = { ...api.namespace.env, STREAM_PORT: port, WEBHOOK_ALLOW_LOOPBACK: 'true' };
  const startStream = () => startProcess('gateway/stream/main.js', [], env);
  let stream = await startStream();
  const ingest = await startIngest(api.namespace);
  const others: TestProcess[] = [ingest.process];
  // One after another, since each start takes a second of a core.
  for (const processor of ['latest', 'analytics', 'webhooks']) {
    others.push(await startProcess('pipelines/main.js', [processor], env));
  }
  await Promise.all([stream, ...others].map((process) => process.ready()));
  const poster = createPoster(ingest.url);
  return {
    api,
    receiver,
    streamUrl,
    poster,
    killStream: () => stream.kill(),
    async restartStream(): Promise<void> {
      stream = await startStream();
      await stream.ready();
    },
    async close(): Promise<void> {
      await poster.close();
      await Promise.all([stream, ...others].map((process) => process.stop()));
      await api.close();
      await receiver.close();
    },
  };
}

export type ConsoleStack = Awaited<ReturnType<typeof openConsoleStack>>;
