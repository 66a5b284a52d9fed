import Fastify from 'fastify';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { runProcess } from '../../lib/run.ts';
import { HTTP_OPTIONS, naiveTopic, readYardstickConfig } from './yardstick.ts';

// What one would write first: no validation, no schema, one send of the Kafka client a request.
await runProcess('naive', readYardstickConfig, async (config, life) => {
  const kafka = new Kafka({
    brokers: [...config.kafkaBrokers],
    clientId: 'naive',
    logLevel: logLevel.ERROR,
  });
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  life.onStop('producer', () => producer.disconnect());
  const topic = naiveTopic(config.namespace);
  const app = Fastify(HTTP_OPTIONS);
  app.post<{ Body: { readonly symbol: string } }>('/api/pillole', async ({ body }) => {
    const messages = [{ key: body.symbol, value: JSON.stringify(body) }];
    await producer.send({ topic, acks: -1, messages });
    return { status: 'ok' };
  });
  await app.listen({ host: '127.0.0.1', port: config.port });
  life.onStop('http server', async () => {
    await app.close();
  });
});
