import type { FastifyRequest } from 'fastify';
import type { AccountAccess } from '../../../lib/access/access.ts';
import { checkGrant } from '../../../lib/access/grant.ts';
import { type AccountRule, metered, type Waiver } from '../access-rule.ts';
import { queryOf } from '../parameters.ts';

/**
 * A read that counts as a call, unless it fills a gap that a stream has told: the grant of its frame
 * makes every page of exactly that range free, for that account.
 */
export function historyRule(pepper: Buffer): AccountRule {
  const waive = (request: FastifyRequest, account: AccountAccess): Waiver | undefined => {
    const query = queryOf(request);
    const grant = query.get('grant');
    if (grant === null) return undefined;
    const range = {
      accountId: account.id,
      symbol: query.get('symbol') ?? '*',
      epoch: query.get('epoch') ?? '',
      after: query.get('after') ?? undefined,
      until: query.get('until') ?? '',
    };
    const verdict = checkGrant(grant, range, Math.floor(Date.now() / 1000), pepper);
    if (verdict === 'granted') return 'free';
    const detail =
      verdict === 'expired'
        ? `The grant was over at ${new Date(Number(grant.split('.', 1)[0]) * 1000).toISOString()}.`
        : 'The grant is not ours, or not for this account and range.';
    return ['grant_invalid', { detail }];
  };
  return { ...metered('history'), waive };
}
