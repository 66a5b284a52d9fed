import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { entitlementOf } from '../../../domain/access/entitlement.ts';
import { SCHEME_LIMITS, type Schemes } from '../../../domain/authentication/schemes.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { signedIn, withFreshFactor } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { noTierRefusal, tierRefusal } from '../server/authorize.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { idOf, STRICT } from '../server/schemas.ts';
import { Authentication, schemeBody } from './scheme-schemas.ts';

/**
 * Without a capability: after a downgrade too, the owner can let keys in again and remove schemes.
 */
const WAY_BACK = withFreshFactor(signedIn('schemes:change'));
const MANAGER = { tag: 'manager' } as const;
const keyParams = Type.Object({ id: idOf('key') }, STRICT);
const Choice = Type.Enum(['accepted', 'refused']);

/** Whether API keys are accepted beside the schemes, of the account and of one key. */
export function keyRefusalRoutes(schemes: Schemes): RouteOptions[] {
  return [showOverview(schemes), refuseKeys(schemes), refuseKey(schemes)];
}

function showOverview(schemes: Schemes): RouteOptions {
  return accountRoute({
    method: 'GET',
    url: '/api/manager/authentication',
    ...MANAGER,
    access: signedIn('schemes:read'),
    summary: 'List the authentication schemes, and whether API keys are accepted beside them',
    answers: { 200: answerOf('Oldest first.', Authentication) },
    handle: (request) => overviewOf(schemes, callerOf(request).account.id),
  });
}

async function overviewOf(schemes: Schemes, accountId: string) {
  const [refused, all] = [await schemes.areKeysRefused(accountId), await schemes.list(accountId)];
  return {
    keys: refused ? 'refused' : 'accepted',
    data: all.map(schemeBody),
    limit: SCHEME_LIMITS.perAccountMax,
  };
}

function refuseKeys(schemes: Schemes): RouteOptions {
  return accountRoute({
    method: 'PATCH',
    url: '/api/manager/authentication',
    ...MANAGER,
    access: WAY_BACK,
    summary: 'Refuse or accept API keys; in effect everywhere within a second',
    description:
      'While keys are refused, schemes are the only way in for programs. Sockets that a key opened ' +
      'are closed with 4502; keys stay as they are and work again once they are accepted. Signed-in ' +
      'users, and sockets that they opened, are not affected.',
    body: Type.Object({ keys: Choice }, STRICT),
    bodyExample: { keys: 'refused' },
    answers: { 200: answerOf('The schemes, and whether keys are accepted.', Authentication) },
    problems: ['state_conflict', 'tier_too_low', 'subscription_required', 'account_suspended'],
    async handle(request, reply) {
      const refused = request.body.keys === 'refused';
      if (refused && !mayUseSchemes(request, reply)) return reply;
      const result = await schemes.refuseKeys({ ...requesterOf(request), refused });
      if (result.kind === 'conflict')
        return refuse(reply, 'state_conflict', { detail: result.reason });
      return overviewOf(schemes, callerOf(request).account.id);
    },
  });
}

function refuseKey(schemes: Schemes): RouteOptions {
  return accountRoute({
    method: 'PATCH',
    url: '/api/manager/authentication/keys/:id',
    ...MANAGER,
    access: WAY_BACK,
    summary:
      'Refuse or accept one API key itself; schemes that stand for it are accepted either way',
    params: keyParams,
    body: Type.Object({ secret: Choice }, STRICT),
    bodyExample: { secret: 'refused' },
    answers: { 200: answerOf('What is in force now.', Type.Object({ secret: Choice })) },
    problems: [
      ...(['object_not_found', 'state_conflict'] as const),
      ...(['tier_too_low', 'subscription_required', 'account_suspended'] as const),
    ],
    async handle(request, reply) {
      const { secret } = request.body;
      const refused = secret === 'refused';
      if (refused && !mayUseSchemes(request, reply)) return reply;
      const keyId = request.params.id;
      const result = await schemes.refuseSecret({ ...requesterOf(request), keyId, refused });
      if (result === undefined) return refuse(reply, 'object_not_found');
      if (result.kind === 'conflict')
        return refuse(reply, 'state_conflict', { detail: result.reason });
      return { secret };
    },
  });
}

/** Refuses the request itself if the tier has no schemes. */
function mayUseSchemes(request: FastifyRequest, reply: FastifyReply): boolean {
  const { account } = callerOf(request);
  const entitlement = entitlementOf(account, 'custom_authentication', Date.now());
  if (entitlement.kind === 'granted') return true;
  const isTooLow = entitlement.kind === 'tier_too_low';
  refuse(reply, ...(isTooLow ? tierRefusal(entitlement) : noTierRefusal(account)));
  return false;
}
