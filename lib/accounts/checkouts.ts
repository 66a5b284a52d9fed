import { sql } from 'kysely';
import { tierOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import type { Tier } from '../access/tiers.ts';
import type { Database } from '../postgres/database.ts';
import { lockAccount, readAccountAccess } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';

export const CHECKOUT_LIMITS = {
  /** Checkouts that an account may begin while one of them could still be open. */
  begunMax: 10,
  lifeMs: 60 * 60 * 1000,
} as const;

export interface SubscriptionRequest extends Requester {
  readonly accountId: string;
}

export type CheckoutBegun =
  | {
      readonly kind: 'ok';
      readonly checkoutId: string;
      readonly url: string;
      readonly expiresAt: Date;
    }
  /** One is in force: its tier is changed, not bought again. */
  | { readonly kind: 'already_subscribed'; readonly tier: Tier }
  | { readonly kind: 'account_suspended' }
  /** Ten were begun within the hour. */
  | { readonly kind: 'limit'; readonly retryAfterS: number };

/** Begins a checkout and voids those before it, so that of one account only one can be paid. */
export async function insertCheckout(
  db: Database,
  provider: string,
  request: SubscriptionRequest & { readonly tier: Tier },
): Promise<
  | Exclude<CheckoutBegun, { kind: 'ok' }>
  | (Omit<CheckoutBegun & { kind: 'ok' }, 'url'> & { readonly voided: readonly string[] })
> {
  const { accountId, tier } = request;
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const account = await readAccountAccess(tx, accountId);
    if (account?.status !== 'active') return { kind: 'account_suspended' };
    const inForce = tierOf(account, Date.now());
    if (inForce !== undefined) return { kind: 'already_subscribed', tier: inForce };
    await tx
      .deleteFrom('checkouts')
      .where('account_id', '=', accountId)
      .where('status', '<>', 'paid')
      .where('expires_at', '<', sql<Date>`now() - interval '1 day'`)
      .execute();
    const begun = await tx
      .selectFrom('checkouts')
      .select(['id', 'expires_at'])
      .where('account_id', '=', accountId)
      .where('expires_at', '>', sql<Date>`now()`)
      .orderBy('expires_at', 'desc')
      .limit(CHECKOUT_LIMITS.begunMax)
      .execute();
    const oldest = begun[CHECKOUT_LIMITS.begunMax - 1];
    if (oldest !== undefined) {
      const leftMs = oldest.expires_at.getTime() - Date.now();
      return { kind: 'limit', retryAfterS: Math.max(1, Math.ceil(leftMs / 1_000)) };
    }
    const voided = await tx
      .updateTable('checkouts')
      .set({ status: 'void' })
      .where('account_id', '=', accountId)
      .where('status', 'in', ['open', 'failed'])
      .returning('id')
      .execute();
    const checkoutId = newId('chk');
    const expiresAt = new Date(Date.now() + CHECKOUT_LIMITS.lifeMs);
    await tx
      .insertInto('checkouts')
      .values({ id: checkoutId, account_id: accountId, tier, provider, expires_at: expiresAt })
      .execute();
    await writeAudit(tx, {
      ...request,
      action: 'checkout.begun',
      target: checkoutId,
      detail: { tier, provider },
    });
    return { kind: 'ok', checkoutId, expiresAt, voided: voided.map(({ id }) => id) };
  });
}
