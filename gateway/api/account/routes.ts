import type { FastifyInstance } from 'fastify';
import { addOwnAccountRoutes } from './account-routes.ts';
import { addBillingEventRoute } from './billing-event-route.ts';
import { addKeyRoutes } from './key-routes.ts';
import type { AccountServices } from './services.ts';
import { addSessionRoutes } from './session-routes.ts';
import { addSubscriptionRoutes } from './subscription-routes.ts';
import { addTicketRoutes } from './ticket-routes.ts';
import { addUserRoutes } from './user-routes.ts';

/** All routes about accounts. */
export function addAccountRoutes(app: FastifyInstance, services: AccountServices): void {
  addUserRoutes(app, services);
  addSessionRoutes(app, services);
  addOwnAccountRoutes(app, services);
  addKeyRoutes(app, services);
  addSubscriptionRoutes(app, services);
  addBillingEventRoute(app, services);
  addTicketRoutes(app, services);
}
