import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { OPEN } from './access-rule.ts';
import { endpoint } from './endpoint.ts';

const Health = Type.Object({ status: Type.String() });

/** `/health` and `/ready` on the public port, for load balancers. */
export function addHealthRoutes(app: FastifyInstance, isReady: () => boolean): void {
  app.route(
    endpoint({
      method: 'GET',
      url: '/health',
      tag: 'service',
      summary: 'Whether the process lives',
      access: OPEN,
      answers: { 200: { description: 'It lives.', schema: Health, example: { status: 'ok' } } },
      handle: () => ({ status: 'ok' }),
    }),
  );
  app.route(
    endpoint({
      method: 'GET',
      url: '/ready',
      tag: 'service',
      summary: 'Whether the process can answer reads',
      access: OPEN,
      answers: {
        200: { description: 'It can.', schema: Health, example: { status: 'ready' } },
        503: { description: 'Not yet.', schema: Health, example: { status: 'not_ready' } },
      },
      handle: (_request, reply) =>
        isReady() ? { status: 'ready' } : reply.code(503).send({ status: 'not_ready' }),
    }),
  );
}
