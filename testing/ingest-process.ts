import { fetchOffsetBounds } from '../lib/kafka/topics.ts';
import { topicName } from '../schemas/topic-catalogue.ts';
import type { Namespace } from './namespace.ts';
import { getPort } from './ports.ts';
import { startProcess, type TestProcess } from './process.ts';

/** A real ingest process in the namespace of a test. */
export interface TestIngest {
  readonly process: TestProcess;
  readonly port: number;
  readonly url: string;
}

export async function startIngest(
  namespace: Namespace,
  env: Readonly<Record<string, string>> = {},
): Promise<TestIngest> {
  const port = await getPort();
  const process = await startProcess('gateway/ingest/main.js', [], {
    ...namespace.env,
    INGEST_PORT: String(port),
    ...env,
  });
  return { process, port, url: `http://127.0.0.1:${port}` };
}

/** The JSON body of an answer. */
export function jsonOf(answer: { readonly body: string }): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}

/** The bytes of a POST; `lines` replace the Content-Type header. */
export function postBytes(
  body: string | Buffer,
  lines: readonly string[] = ['Content-Type: application/json'],
  path = '/api/pillole',
): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Length: ${bytes.length}`,
    ...lines,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
}

/** Number of records written to the pills topic so far. */
export async function countPillsInLog({ client, name }: Namespace): Promise<number> {
  const bounds = await fetchOffsetBounds(client, topicName(name, 'pills'));
  return [...bounds.values()].reduce((sum, { high }) => sum + high, 0);
}
