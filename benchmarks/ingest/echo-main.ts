import Fastify from 'fastify';
import { runProcess } from '../../lib/run.ts';
import { HTTP_OPTIONS, readYardstickConfig } from './yardstick.ts';

// What Fastify alone does with the same requests on this machine.
await runProcess('echo', readYardstickConfig, async ({ port }, life) => {
  const app = Fastify(HTTP_OPTIONS);
  app.post('/api/pillole', (request, reply) => reply.send(request.body));
  await app.listen({ host: '127.0.0.1', port });
  life.onStop('http server', async () => {
    await app.close();
  });
});
