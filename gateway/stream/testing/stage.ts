import { startProcess, type TestProcess } from '../../../lib/testing/process.ts';
import type { Client } from './client.ts';

/** Starts a stream process on a port of its own, and waits until it is ready. */
export async function startStream(
  env: Readonly<Record<string, string>>,
): Promise<{ readonly stream: TestProcess; readonly url: string }> {
  const stream = await startProcess('gateway/stream/main.js', [], { ...env, STREAM_PORT: '0' });
  await stream.ready();
  const [, url] = /"url":"(ws:[^"]+)"/.exec(stream.output())!;
  return { stream, url: url! };
}

/** Subscribes and waits for `live`. */
export async function subscribe(client: Client, fields: Record<string, unknown>) {
  client.send({ op: 'subscribe', ...fields });
  return client.until('live');
}
