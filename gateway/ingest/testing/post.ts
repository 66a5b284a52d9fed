import { randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import { readAll } from '../../../lib/kafka/read-all.ts';
import type { Namespace } from '../../../lib/testing/namespace.ts';
import { createDecoder } from '../../../schemas/avro.ts';
import { topicName } from '../../../schemas/topics.ts';

/** A pill as a generator sends it; `fields` replace what matters to the test. */
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

/** Posts over connections that are kept, as a generator does. */
export interface Generator {
  /** @param body text is sent as it is, all else as JSON */
  post(url: string, body: unknown, options?: Omit<PostOptions, 'url'>): Promise<Answer>;
  close(): Promise<void>;
}

export function openGenerator(): Generator {
  const agent = new Agent({ connections: 64, pipelining: 1 });
  return {
    async post(url, body, { type = 'application/json', headers = {} } = {}) {
      const answer = await request(url, {
        method: 'POST',
        headers: { 'content-type': type, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        dispatcher: agent,
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, headers: answer.headers, text, json: JSON.parse(text) };
    },
    close: () => agent.close(),
  };
}

/** All pills in the log of a namespace, each with its place. */
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
