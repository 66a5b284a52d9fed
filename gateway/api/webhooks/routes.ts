import type { FastifyInstance } from 'fastify';
import { addAttemptRoutes } from './attempt-routes.ts';
import { addDeliveryRoutes } from './delivery-routes.ts';
import { addEndpointRoutes } from './endpoint-routes.ts';
import { addProofRoutes } from './proof-routes.ts';
import { addReplayRoute } from './replay-route.ts';
import type { Webhooks } from './webhooks.ts';

/** All routes about webhooks. */
export function addWebhookRoutes(app: FastifyInstance, webhooks: Webhooks): void {
  addEndpointRoutes(app, webhooks);
  addProofRoutes(app, webhooks);
  addDeliveryRoutes(app, webhooks);
  addAttemptRoutes(app, webhooks);
  addReplayRoute(app, webhooks);
}
