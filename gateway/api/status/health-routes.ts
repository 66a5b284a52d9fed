import { Type } from 'typebox';
import { OPEN } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';

const Health = Type.Object({ status: Type.String() });

/** `GET /health` and `GET /ready` on the public port, for load balancers. */
export const healthRoutes = (isReady: () => boolean) => [
  defineRoute({
    method: 'GET',
    url: '/health',
    tag: 'service',
    summary: 'Check whether the process is alive',
    access: OPEN,
    answers: {
      200: { description: 'The process is alive.', schema: Health, example: { status: 'ok' } },
    },
    handle: () => ({ status: 'ok' }),
  }),
  defineRoute({
    method: 'GET',
    url: '/ready',
    tag: 'service',
    summary: 'Check whether the process can answer reads',
    access: OPEN,
    answers: {
      200: { description: 'Ready.', schema: Health, example: { status: 'ready' } },
      503: { description: 'Not ready yet.', schema: Health, example: { status: 'not_ready' } },
    },
    handle: (_request, reply) =>
      isReady() ? { status: 'ready' } : reply.code(503).send({ status: 'not_ready' }),
  }),
];
