import type { FastifyRequest } from 'fastify';
import type { AccountAccess } from '../../../domain/access/account-access.ts';
import { checkGapFillGrant } from '../../../domain/access/gap-fill-grant.ts';
import type { Pepper } from '../../../domain/access/pepper.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { type AccountRule, metered, type Waiver } from '../server/access-rule.ts';
import { queryOf } from '../server/parameters.ts';

/**
 * A read counts as a call, unless it fills a gap that a stream reported: the grant of the gap frame
 * makes every page of exactly that range free for that account.
 */
export function historyRule(pepper: Pepper): AccountRule {
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
    const verdict = checkGapFillGrant(grant, range, Math.floor(Date.now() / 1000), pepper);
    if (verdict === 'granted') return 'free';
    const expiry = () => formatTimestamp(Number(grant.split('.', 1)[0]) * 1e6);
    const detail =
      verdict === 'expired'
        ? `The grant expired at ${expiry()}.`
        : 'The grant is not valid, or not for this account and range.';
    return ['grant_invalid', { detail }];
  };
  return { ...metered('history'), waive };
}
