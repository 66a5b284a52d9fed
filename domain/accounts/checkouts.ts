import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { AccountAccess } from '../access/account-access.ts';
import { tierOf } from '../access/entitlement.ts';
import { newId } from '../access/id.ts';
import type { Tier } from '../access/tiers.ts';
import {
  lockAccount,
  readAccountAccess,
  readSubscriptionRow,
  type SubscriptionRow,
} from './account-row.ts';
import { type AccountRequest, writeAudit } from './audit.ts';
import { type Charge, chargeFor, isUpgrade } from './prices.ts';

export const CHECKOUT_LIMITS = {
  /** Checkouts that an account may begin within the life of a checkout. */
  begunMax: 10,
  lifeMs: 60 * 60 * 1000,
} as const;

/** Who buys: only users with a verified address may. */
export interface Buyer {
  readonly isVerified: boolean;
}

/** Why an account can buy nothing now. */
export type NoPurchase = {
  readonly kind: 'billing_off' | 'email_unverified' | 'account_suspended' | 'payment_overdue';
};

type CheckoutBegun =
  | (Charge & {
      readonly kind: 'ok';
      readonly checkoutId: string;
      readonly expiresAt: Date;
      readonly voided: readonly string[];
      /** The provider's id of the subscription that is upgraded. */
      readonly upgrades: string | undefined;
    })
  | NoPurchase
  /** This tier or a higher one is in force. */
  | { readonly kind: 'already_subscribed'; readonly tier: Tier }
  /** Why the subscription cannot be upgraded now. */
  | { readonly kind: 'conflict'; readonly detail: string }
  /** Ten checkouts were begun within the hour. */
  | { readonly kind: 'limit'; readonly retryAfterS: number };

/**
 * Why an account may not buy, whatever it wants to buy; undefined if it may. Every path to a tier
 * asks this: a checkout, its payment by a user, and a change that keeps a tier for another period.
 */
export function purchaseRefusal(
  { isVerified }: Buyer,
  account: Pick<AccountAccess, 'status' | 'subscription'> | undefined,
  canBuy: boolean,
): NoPurchase | undefined {
  if (!canBuy) return { kind: 'billing_off' };
  if (!isVerified) return { kind: 'email_unverified' };
  if (account?.status !== 'active') return { kind: 'account_suspended' };
  return undefined;
}

/**
 * Begins a checkout and voids earlier ones, so that only one checkout per account can be paid. With a
 * subscription in force the checkout upgrades it, and can be paid until its period ends.
 */
export async function insertCheckout(
  db: Database,
  { name: provider, canBuy }: { readonly name: string; readonly canBuy: boolean },
  request: AccountRequest & Buyer & { readonly tier: Tier },
): Promise<CheckoutBegun> {
  const { accountId, tier } = request;
  return inTurn(db, accountId, async (tx) => {
    await lockAccount(tx, accountId);
    const nowMs = Date.now();
    const account = await readAccountAccess(tx, accountId);
    const refusal = purchaseRefusal(request, account, canBuy);
    if (refusal !== undefined) return refusal;
    const inForce = tierOf(account!, nowMs);
    const present = inForce && (await readSubscriptionRow(tx, accountId));
    const fault = present && upgradeFault(present, inForce, tier, provider, nowMs);
    if (fault !== undefined) return fault;
    const retryAfterS = await countBegun(tx, accountId, nowMs);
    if (retryAfterS > 0) return { kind: 'limit', retryAfterS };
    const voided = await tx
      .updateTable('checkouts')
      .set({ status: 'void' })
      .where('account_id', '=', accountId)
      .where('status', 'in', ['open', 'failed'])
      .returning('id')
      .execute();
    const checkoutId = newId('chk');
    const endMs = present?.period_end.getTime() ?? Number.POSITIVE_INFINITY;
    const charge = chargeFor(tier, present && { tier: present.tier, leftMs: endMs - nowMs });
    const upgrades = present?.provider_reference;
    const expiresAt = new Date(Math.min(nowMs + CHECKOUT_LIMITS.lifeMs, endMs));
    await tx
      .insertInto('checkouts')
      .values({
        ...{ id: checkoutId, account_id: accountId, tier, provider, expires_at: expiresAt },
        ...{ upgrades: upgrades ?? null, amount_cents: charge.amountCents },
      })
      .execute();
    await writeAudit(tx, {
      ...request,
      action: 'checkout.begun',
      target: checkoutId,
      detail: { tier, provider, ...charge },
    });
    const ids = voided.map(({ id }) => id);
    return { kind: 'ok', checkoutId, expiresAt, upgrades, voided: ids, ...charge };
  });
}

/** Why a subscription in force cannot be upgraded to a tier; undefined if it can. */
function upgradeFault(
  present: SubscriptionRow,
  inForce: Tier,
  tier: Tier,
  provider: string,
  nowMs: number,
): Exclude<CheckoutBegun, { kind: 'ok' | 'limit' }> | undefined {
  if (!isUpgrade(inForce, tier)) return { kind: 'already_subscribed', tier: inForce };
  if (present.status === 'past_due') return { kind: 'payment_overdue' };
  if (present.provider !== provider) {
    return {
      kind: 'conflict',
      detail: 'Another provider bills the subscription: upgrade it there.',
    };
  }
  if (nowMs < present.period_end.getTime()) return undefined;
  return { kind: 'conflict', detail: 'The subscription is being renewed: try again in a minute.' };
}

/** Counts the checkouts of an account. @returns seconds until it may begin another; 0 = now */
async function countBegun(
  tx: Transaction<Tables>,
  accountId: string,
  nowMs: number,
): Promise<number> {
  await tx
    .deleteFrom('checkouts')
    .where('account_id', '=', accountId)
    .where('status', '<>', 'paid')
    .where('expires_at', '<', sql<Date>`now() - interval '1 day'`)
    .execute();
  const begun = await tx
    .selectFrom('checkouts')
    .select('expires_at')
    .where('account_id', '=', accountId)
    .where('expires_at', '>', sql<Date>`now()`)
    .orderBy('expires_at', 'desc')
    .limit(CHECKOUT_LIMITS.begunMax)
    .execute();
  const oldest = begun[CHECKOUT_LIMITS.begunMax - 1];
  if (oldest === undefined) return 0;
  return Math.max(1, Math.ceil((oldest.expires_at.getTime() - nowMs) / 1_000));
}
