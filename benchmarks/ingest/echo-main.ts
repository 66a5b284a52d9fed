import { runReference } from '../http-load/reference-server.ts';

// The performance of Fastify alone with the same requests on this machine.
await runReference('echo', 'ingest', (app) => {
  app.post('/api/pillole', (request, reply) => reply.send(request.body));
});
