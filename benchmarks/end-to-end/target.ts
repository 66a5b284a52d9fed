import { Pool } from 'undici';
import { openKafkaSender } from '../../generator/kafka-sender.ts';
import { createKafkaClient } from '../../lib/kafka/client.ts';
import { openProducer } from '../../lib/kafka/producer.ts';
import { silentLog } from '../../lib/log.ts';
import { pillJson } from '../../lib/pill-json.ts';
import type { Pill } from '../../schemas/pill.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import type { LoadPlan } from './plan.ts';

/** Where a load goes: one pill a call, one try, and a reason where it was not acknowledged. */
export interface Target {
  /** @returns undefined when acknowledged. */
  send(pill: Pill): Promise<string | undefined>;
  close(): Promise<void>;
}

export function openTarget(plan: LoadPlan): Promise<Target> {
  switch (plan.via) {
    case 'http':
      return Promise.resolve(openHttp(plan));
    case 'direct':
      return openDirect(plan);
    case 'log':
      return openLog(plan);
  }
}

async function openLog({ kafka, logTopic }: LoadPlan): Promise<Target> {
  const producer = await openProducer(createKafkaClient(kafka.split(','), 'bench', silentLog));
  return {
    async send({ id }) {
      const record = { topic: logTopic, partition: 0, key: id, value: Buffer.from(id) };
      await producer.produce([record]);
      return undefined;
    },
    close: producer.close,
  };
}

function openHttp({ ingest, credential, connections }: LoadPlan): Target {
  const pool = new Pool(ingest, { connections, pipelining: 1, headersTimeout: 10_000 });
  const headers = {
    'content-type': 'application/json',
    ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
  };
  return {
    async send(pill) {
      const body = pillJson(pill);
      const answer = await pool.request({ method: 'POST', path: '/api/pillole', body, headers });
      await answer.body.dump();
      return answer.statusCode === 200 ? undefined : `HTTP ${answer.statusCode}`;
    },
    close: () => pool.destroy(),
  };
}

async function openDirect({ kafka, registry, namespace }: LoadPlan): Promise<Target> {
  const sender = await openKafkaSender({
    client: createKafkaClient(kafka.split(','), 'bench', silentLog),
    schemas: createSchemaClient(registry, namespace),
    namespace,
    source: 'bench',
    retry: { triesMax: 1, firstMs: 0, maxMs: 0, signal: new AbortController().signal },
  });
  return {
    async send(pill) {
      const { ok, refused, unknown } = await sender.send([pill]);
      return ok === 1 ? undefined : (refused[0] ?? unknown[0])?.reason;
    },
    close: sender.close,
  };
}
