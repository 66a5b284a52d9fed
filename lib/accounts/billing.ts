import type { IncomingHttpHeaders } from 'node:http';
import type { Transaction } from 'kysely';
import type { Tier } from '../access/tiers.ts';
import type { Database } from '../postgres/database.ts';
import type { Tables } from '../postgres/tables.ts';
import { tellChange, tellFailure } from './account-events.ts';
import { lockAccount, readSubscriptionRow, type SubscriptionRow } from './account-row.ts';
import { type Requester, writeAudit } from './audit.ts';

/** A subscription at its provider. */
export interface BilledSubscription {
  readonly accountId: string;
  /** The provider's id of it. */
  readonly reference: string;
}

/** Where money is taken. Methods throw what the provider's API says; then nothing has changed. */
export interface BillingProvider {
  /** As in the rows: `test`, `stripe`. */
  readonly name: string;
  /** false = no money moves, and pages say so. */
  readonly takesMoney: boolean;
  /** Begins a payment. @returns the page where the customer pays */
  createCheckout(checkout: {
    readonly accountId: string;
    readonly tier: Tier;
    readonly checkoutId: string;
    /** Where the page leads back to. */
    readonly returnUrl: string;
  }): Promise<{ readonly url: string }>;
  changeTier(subscription: BilledSubscription, tier: Tier): Promise<void>;
  cancel(subscription: BilledSubscription, at: 'period_end' | 'now'): Promise<void>;
  /** Takes back a cancellation to the period's end. */
  resume(subscription: BilledSubscription): Promise<void>;
  /**
   * Reads an event that came over the network. @param rawBody as received: the signature is over it
   * @returns `not_for_us` = signed well, but of no meaning here: answer 200, or it comes for ever
   */
  parseEvent(
    rawBody: Buffer,
    headers: IncomingHttpHeaders,
  ): BillingEvent | 'signature_invalid' | 'not_for_us';
}

export type BillingEventType =
  | 'checkout.paid'
  | 'checkout.failed'
  | 'payment.succeeded'
  | 'payment.failed'
  | 'subscription.ended';

/** What a provider tells. Of checkout, reference and account the first that is given decides. */
export interface BillingEvent {
  readonly provider: string;
  /** The provider's id of it; the same id has effect once. */
  readonly eventId: string;
  readonly type: BillingEventType;
  /** Ours, of `checkout.*`. */
  readonly checkoutId?: string | undefined;
  /** The provider's id of the subscription. */
  readonly reference?: string | undefined;
  readonly accountId?: string | undefined;
  /** Tier that was paid; undefined = the one it was. */
  readonly tier?: Tier | undefined;
  /** Paid until then; undefined = 30 days from `at`. */
  readonly periodEnd?: Date | undefined;
  /** When it happened at the provider. */
  readonly at: Date;
}

export type BillingOutcome =
  | { readonly kind: 'applied'; readonly accountId: string }
  /** It had its effect before. */
  | { readonly kind: 'repeat' }
  /** Remembered, but something newer is known: no effect. */
  | { readonly kind: 'stale' }
  /** No such checkout or subscription here, perhaps not yet: not remembered, so send it again. */
  | { readonly kind: 'unknown' };

/** What is paid for when the provider does not say until when. */
export const PERIOD_MS = 30 * 86_400_000;

/**
 * Lets an event have its effect, with what is to be told and the audit entry, in one transaction.
 * The same (provider, id) has effect once, also when it comes many times at the same moment.
 *
 * Events may come in any order: `subscriptions.updated_at` is the time of the newest event that
 * had effect, by the provider's clock. One that is older is remembered as `stale` and changes
 * nothing, so a failure that comes late does not undo the payment that followed it. An event of
 * another subscription than the present one is stale too. One whose subscription is not there yet
 * is `unknown`: it comes again, after the checkout it overtook.
 * @param requester who set it off, when it was not the provider
 */
export async function applyBillingEvent(
  db: Database,
  event: BillingEvent,
  requester: Requester = { actor: `billing:${event.provider}` },
): Promise<BillingOutcome> {
  return db.transaction().execute(async (tx): Promise<BillingOutcome> => {
    const accountId = await accountOf(tx, event);
    if (accountId === undefined || !(await lockAccount(tx, accountId))) return { kind: 'unknown' };
    const before = await readSubscriptionRow(tx, accountId);
    if (before === undefined && event.checkoutId === undefined) return { kind: 'unknown' };
    if (!(await remember(tx, event, accountId))) return { kind: 'repeat' };
    // A provider's clock that is ahead must not make all that follows stale.
    const at = new Date(Math.min(event.at.getTime(), Date.now()));
    const audit = (detail: object) =>
      writeAudit(tx, {
        ...requester,
        accountId,
        action: event.type,
        target: event.checkoutId ?? event.reference ?? before?.provider_reference,
        detail: { event_id: event.eventId, occurred_at: at, ...detail },
      });

    const checkout = event.checkoutId === undefined ? undefined : await endCheckout(tx, event);
    if (checkout === 'stale') return { kind: 'stale' };
    if (event.type === 'checkout.failed') {
      await audit({});
      return { kind: 'applied', accountId };
    }
    if (before !== undefined && at < before.updated_at) return { kind: 'stale' };
    const after =
      checkout === undefined
        ? changed(before!, event, at)
        : bought(accountId, checkout.tier, event, at);
    if (after === 'stale') return { kind: 'stale' };
    await putSubscription(tx, after);
    await audit({ tier: after.tier, status: after.status, period_end: after.period_end });
    if (event.type === 'payment.failed') await tellFailure(tx, after, event.eventId);
    else await tellChange(tx, before, after, event.eventId);
    return { kind: 'applied', accountId };
  });
}

async function accountOf(
  tx: Transaction<Tables>,
  { provider, checkoutId, reference, accountId }: BillingEvent,
): Promise<string | undefined> {
  if (checkoutId !== undefined) {
    const checkout = await tx
      .selectFrom('checkouts')
      .select('account_id')
      .where('id', '=', checkoutId)
      .where('provider', '=', provider)
      .executeTakeFirst();
    return checkout?.account_id;
  }
  if (reference === undefined) return accountId;
  const subscription = await tx
    .selectFrom('subscriptions')
    .select('account_id')
    .where('provider', '=', provider)
    .where('provider_reference', '=', reference)
    .executeTakeFirst();
  return subscription?.account_id ?? accountId;
}

/** @returns false when it is remembered already; waits for one that is being written */
async function remember(
  tx: Transaction<Tables>,
  event: BillingEvent,
  accountId: string,
): Promise<boolean> {
  const written = await tx
    .insertInto('billing_events')
    .values({
      provider: event.provider,
      event_id: event.eventId,
      type: event.type,
      account_id: accountId,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('event_id')
    .executeTakeFirst();
  return written !== undefined;
}

/** A checkout ends once: the outcome that comes first counts. */
async function endCheckout(
  tx: Transaction<Tables>,
  event: BillingEvent,
): Promise<{ readonly tier: Tier } | 'stale'> {
  const ended = await tx
    .updateTable('checkouts')
    .set({ status: event.type === 'checkout.paid' ? 'paid' : 'failed' })
    .where('id', '=', event.checkoutId!)
    .where('status', '=', 'open')
    .returning('tier')
    .executeTakeFirst();
  return ended ?? 'stale';
}

function bought(accountId: string, tier: Tier, event: BillingEvent, at: Date): SubscriptionRow {
  return {
    account_id: accountId,
    tier,
    status: 'active',
    past_due_since: null,
    period_end: event.periodEnd ?? new Date(at.getTime() + PERIOD_MS),
    cancel_at_period_end: false,
    provider: event.provider,
    provider_reference: event.reference ?? event.checkoutId!,
    updated_at: at,
  };
}

function changed(
  before: SubscriptionRow,
  event: BillingEvent,
  at: Date,
): SubscriptionRow | 'stale' {
  const isOther =
    before.provider !== event.provider ||
    (event.reference !== undefined && event.reference !== before.provider_reference);
  // Only a checkout opens a subscription that has ended.
  if (isOther || before.status === 'ended') return 'stale';
  const row = { ...before, updated_at: at };
  if (event.type === 'payment.failed') {
    return { ...row, status: 'past_due', past_due_since: before.past_due_since ?? at };
  }
  if (event.type === 'subscription.ended') {
    return { ...row, status: 'ended', past_due_since: null };
  }
  const paidUntil = event.periodEnd ?? new Date(at.getTime() + PERIOD_MS);
  return {
    ...row,
    tier: event.tier ?? before.tier,
    status: 'active',
    past_due_since: null,
    period_end: paidUntil > before.period_end ? paidUntil : before.period_end,
  };
}

async function putSubscription(tx: Transaction<Tables>, row: SubscriptionRow): Promise<void> {
  await tx
    .insertInto('subscriptions')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(row))
    .execute();
}
