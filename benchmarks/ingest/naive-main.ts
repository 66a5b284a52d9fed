import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { naiveTopic, runReference } from '../http-load/reference-server.ts';

// A first attempt at ingest: no validation, no schema, one send of the Kafka client a request.
await runReference('naive', 'ingest', async (app, { kafka: { brokers }, namespace }, life) => {
  const kafka = new Kafka({
    brokers: [...brokers],
    clientId: 'naive',
    logLevel: logLevel.ERROR,
  });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  life.onStop('producer', () => producer.disconnect());
  const topic = naiveTopic(namespace);
  app.post<{ Body: { readonly symbol: string } }>('/api/pillole', async ({ body }) => {
    const messages = [{ key: body.symbol, value: JSON.stringify(body) }];
    await producer.send({ topic, acks: -1, messages });
    return { status: 'ok' };
  });
});
