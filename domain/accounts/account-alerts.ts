import type { Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { networkOf } from '../access/network-of.ts';
import { raise } from './account-events.ts';
import type { Visitor } from './visitor.ts';

/**
 * Events that are mailed so that the owner notices a stranger; webhooks do not carry them, because a
 * stranger in the account could change those.
 */
export type SecurityEvent =
  | 'password.changed'
  | 'key.created'
  | 'scheme.created'
  | 'member.joined'
  | 'member.removed'
  | 'member.role_changed'
  | 'webhook.created'
  | 'webhook.moved'
  | 'sign_in.new_address'
  | 'second_factor.enabled'
  | 'second_factor.removed'
  | 'second_factor.attempts'
  | 'recovery_code.used'
  | 'recovery_codes.renewed';

/** @param occurrence identifies the event: another one of the same name is not raised */
export function raiseSecurityEvent(
  on: Database | Transaction<Tables>,
  accountId: string,
  event: { readonly type: SecurityEvent; readonly occurrence: string; readonly data: object },
): Promise<void> {
  return raise(on, accountId, event.type, event.occurrence, event.data);
}

/** At most one event for a network on a day. */
export function raiseNewAddress(
  tx: Transaction<Tables>,
  user: { readonly id: string; readonly account_id: string; readonly email: string },
  { address, userAgent = '' }: Visitor,
): Promise<void> {
  const at = new Date().toISOString();
  return raiseSecurityEvent(tx, user.account_id, {
    type: 'sign_in.new_address',
    occurrence: `${user.id}/${networkOf(address)}/${at.slice(0, 10)}`,
    data: { email: user.email, address, program: userAgent, at },
  });
}
