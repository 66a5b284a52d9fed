import type { FastifyInstance } from 'fastify';
import { addManagerStreamRoutes } from '../manager/stream-routes.ts';
import { addOwnAccountRoutes } from './account-routes.ts';
import type { Accounts } from './accounts.ts';
import { addBillingEventRoute } from './billing-event-route.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addSessionRoutes } from './session-routes.ts';
import { addStreamSessionRoutes } from './stream-session-routes.ts';
import { addStreamTicketRoute } from './stream-ticket-route.ts';
import { addSubscriptionRoutes } from './subscription-routes.ts';
import { addSupportRoute } from './support-route.ts';
import { addUserRoutes } from './user-routes.ts';

/** All routes about accounts. */
export function addAccountRoutes(app: FastifyInstance, accounts: Accounts): void {
  addUserRoutes(app, accounts);
  addSessionRoutes(app, accounts);
  addOwnAccountRoutes(app, accounts);
  addKeyRoutes(app, accounts);
  addSubscriptionRoutes(app, accounts);
  addBillingEventRoute(app, accounts);
  addSupportRoute(app, accounts);
  addStreamTicketRoute(app, accounts);
  addStreamSessionRoutes(app, accounts);
  addManagerStreamRoutes(app, accounts.dedicated);
}
