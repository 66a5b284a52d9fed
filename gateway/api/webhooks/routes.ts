import type { RouteOptions } from 'fastify';
import { attemptRoutes } from './attempt-routes.ts';
import { deliveryRoutes } from './delivery-routes.ts';
import { endpointRoutes } from './endpoint-routes.ts';
import { proofRoutes } from './proof-routes.ts';
import { replayRoute } from './replay-route.ts';
import type { Webhooks } from './webhook-deps.ts';

/** All routes about webhooks. */
export function webhookRoutes(webhooks: Webhooks): RouteOptions[] {
  return [
    ...endpointRoutes(webhooks),
    ...proofRoutes(webhooks),
    ...deliveryRoutes(webhooks),
    ...attemptRoutes(webhooks),
    replayRoute(webhooks),
  ];
}
