import type { FastifyRequest } from 'fastify';
import type { DeskAccess } from '../../../domain/access/account-access.ts';
import type { Refusal } from '../../http/problems.ts';
import type { AccountRule } from './access-rule.ts';
import { queryOf } from './parameters.ts';

/** Whether a route shows pills, so that it matters which symbols a desk may read. */
export function isOfSymbols(rule: AccountRule): boolean {
  return rule.isMetered || isRefused(rule);
}

/** Exports and webhooks are refused as a whole: their bodies and deliveries are of any symbol. */
function isRefused({ scope = 'any' }: AccountRule): boolean {
  return scope === 'exports' || scope.startsWith('webhooks:');
}

/**
 * Why a key of a desk that is limited to some symbols may not send a request. Reads that count name
 * their symbols in `symbol` or `symbols`, on every route; one that names none is about all.
 */
export function symbolsRefusal(
  rule: AccountRule,
  request: FastifyRequest,
  desk: DeskAccess | undefined,
): Refusal | undefined {
  if (desk?.symbols === undefined) return undefined;
  const { name, symbols } = desk;
  if (isRefused(rule)) {
    const detail = 'Exports and webhooks are not for desks that are limited to some symbols.';
    return ['symbol_refused', { desk: name, detail }];
  }
  if (!rule.isMetered) return undefined;
  const query = queryOf(request);
  const named = [...query.getAll('symbol'), ...query.getAll('symbols')].flatMap((text) =>
    text.split(','),
  );
  if (named.length === 0) {
    const detail = 'The request is about all symbols: name some in `symbol` or `symbols`.';
    return ['symbol_refused', { desk: name, detail }];
  }
  const others = named.filter((symbol) => !symbols.has(symbol)).slice(0, 20);
  return others.length === 0 ? undefined : ['symbol_refused', { desk: name, symbols: others }];
}
