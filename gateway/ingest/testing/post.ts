import { randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import { afterAll, beforeAll } from 'vitest';
import { readAll } from '../../../lib/kafka/read-all.ts';
import { createDecoder } from '../../../schemas/avro.ts';
import { topicName } from '../../../schemas/topic-catalogue.ts';
import { startIngest } from '../../../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../../../testing/namespace.ts';

/** A pill as a generator sends it; `fields` replace the values that matter to the test. */
export const pillOf = (fields: object = {}) => ({
  id: randomUUID(),
  timestamp: new Date().toISOString(),
  symbol: '7203.T',
  gross_spread_percent: 0.125,
  market_state: 'open',
  confidence: 87.5,
  ...fields,
});

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export interface PostOptions {
  readonly url?: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts an ingest process, and posts to it over kept-alive connections, as a generator does. */
export async function openTestIngest() {
  const namespace = await createNamespace();
  const ingest = await startIngest(namespace);
  const agent = new Agent({ connections: 64, pipelining: 1 });
  return {
    namespace,
    ingest,
    /** @param body text is sent as it is, anything else as JSON */
    async post(body: unknown, options: PostOptions = {}): Promise<Answer> {
      const {
        url = `${ingest.url}/api/pillole`,
        type = 'application/json',
        headers = {},
      } = options;
      const answer = await request(url, {
        method: 'POST',
        headers: { 'content-type': type, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        dispatcher: agent,
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, headers: answer.headers, text, json: JSON.parse(text) };
    },
    async close(): Promise<void> {
      await agent.close();
      await ingest.process.stop();
    },
  };
}

/** An ingest process for the tests of a file, and posts to it. */
export function useIngest() {
  let setup: Awaited<ReturnType<typeof openTestIngest>>;
  beforeAll(async () => {
    setup = await openTestIngest();
    await setup.ingest.process.ready();
  });
  afterAll(() => setup?.close());
  return {
    /** Available in tests. */
    opened: () => setup,
    post: (body: unknown, options?: PostOptions) => setup.post(body, options),
  };
}

/** All pills in the log of a namespace, each with its cursor. */
export async function readPills({ client, schemas, name }: Namespace) {
  await schemas.register('pills');
  const decoder = createDecoder('pill', schemas.writerSchemas);
  const records = await readAll(client, topicName(name, 'pills'));
  return records.map(({ partition, offset, key, value, appendedAt }) => {
    const decoded = decoder.decode(value);
    if (!('ok' in decoded) || !decoded.ok) throw new Error(JSON.stringify(decoded));
    return { cursor: `${partition}-${offset}`, key: key?.toString(), appendedAt, ...decoded.value };
  });
}
