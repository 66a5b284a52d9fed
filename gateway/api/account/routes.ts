import type { RouteOptions } from 'fastify';
import type { Accounts } from './account-deps.ts';
import { billingEventRoute } from './billing-event-route.ts';
import { invoiceRoute } from './invoice-route.ts';
import { keyRoutes } from './key-routes.ts';
import { ownAccountRoutes } from './own-account-routes.ts';
import { secondFactorRoutes } from './second-factor-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { socketRoutes } from './socket-routes.ts';
import { subscriptionRoutes } from './subscription-routes.ts';
import { supportRoutes } from './support-routes.ts';
import { userRoutes } from './user-routes.ts';

/** All routes about accounts. */
export function accountRoutes(accounts: Accounts): RouteOptions[] {
  return [
    ...userRoutes(accounts),
    ...sessionRoutes(accounts),
    ...secondFactorRoutes(accounts),
    ...ownAccountRoutes(accounts),
    ...keyRoutes(accounts),
    ...subscriptionRoutes(accounts),
    invoiceRoute(accounts),
    billingEventRoute(accounts),
    ...supportRoutes(accounts),
    ...socketRoutes(accounts),
  ];
}
