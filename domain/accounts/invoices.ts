import { sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tier } from '../access/tiers.ts';
import { chargeFor } from './prices.ts';
import { TEST_PROVIDER } from './test-billing.ts';

/** The newest invoices; 100 are eight years of renewals. */
export const INVOICES_MAX = 100;

/** A payment of the test provider, which moves no money. Amounts are in cents. */
export interface Invoice {
  /** From 1, in the order of the account's payments. */
  readonly number: number;
  readonly kind: 'purchase' | 'renewal';
  readonly at: Date;
  readonly tier: Tier;
  readonly amountCents: number;
  /** The price less the amount: the unused part of the period that an upgrade replaced. */
  readonly creditCents: number;
  readonly periodEnd: Date;
}

interface PaymentRow {
  readonly number: string;
  readonly type: string;
  readonly at: Date;
  readonly tier: Tier | null;
  readonly amount_cents: number | null;
  readonly period_end: Date;
}

/**
 * Lists the payments of an account, newest first, at most 100. The documents of another provider are
 * the provider's own.
 */
export async function listInvoices(db: Database, accountId: string): Promise<readonly Invoice[]> {
  // By the keys of both tables: there is no index of events by account.
  const { rows } = await sql<PaymentRow>`
    WITH bought AS (
      SELECT e.event_id, e.reference, c.amount_cents
      FROM checkouts c
      JOIN billing_events e ON e.provider = c.provider AND e.event_id = c.id || '/paid'
      WHERE c.account_id = ${accountId} AND c.provider = ${TEST_PROVIDER} AND c.status = 'paid'
    ), events AS (
      SELECT e.event_id, e.type, e.at, e.tier, e.period_end FROM billing_events e
      WHERE e.provider = ${TEST_PROVIDER} AND e.period_end IS NOT NULL
        AND e.reference IN (SELECT reference FROM bought)
    )
    SELECT row_number() OVER (ORDER BY e.at, e.event_id) AS number, e.type, e.at, b.amount_cents,
      coalesce(e.tier, (
        SELECT p.tier FROM events p WHERE p.tier IS NOT NULL AND p.at <= e.at
        ORDER BY p.at DESC LIMIT 1
      )) AS tier, e.period_end
    FROM events e LEFT JOIN bought b USING (event_id)
    WHERE e.type IN ('checkout.paid', 'payment.succeeded')
    ORDER BY e.at DESC, e.event_id DESC LIMIT ${INVOICES_MAX}`.execute(db);
  return rows.flatMap((row) => (row.tier === null ? [] : [invoiceOf(row, row.tier)]));
}

function invoiceOf(row: PaymentRow, tier: Tier): Invoice {
  const price = chargeFor(tier).amountCents;
  const amountCents = row.amount_cents ?? price;
  return {
    number: Number(row.number),
    kind: row.type === 'checkout.paid' ? 'purchase' : 'renewal',
    at: row.at,
    tier,
    amountCents,
    creditCents: price - amountCents,
    periodEnd: row.period_end,
  };
}
