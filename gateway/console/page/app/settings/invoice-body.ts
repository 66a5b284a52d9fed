/** A payment, as GET /api/subscription/invoices lists it. */
export interface Invoice {
  readonly number: number;
  readonly kind: 'purchase' | 'renewal';
  readonly at: string;
  readonly tier: string;
  readonly amount_cents: number;
  readonly credit_cents: number;
  readonly currency: string;
  readonly period_end: string;
  readonly note: string;
}

/** `TEST-0002`: no tax office takes it for a bill. */
export const invoiceName = ({ number }: Invoice): string =>
  `TEST-${String(number).padStart(4, '0')}`;

const TITLES: Readonly<Record<string, string>> = {
  basic: 'Basic API',
  pro: 'Pro API',
  institutional: 'Institutional API',
};
export const planTitle = (tier: string): string => TITLES[tier] ?? tier;

export const moneyOf = (cents: number, currency: string): string =>
  (cents / 100).toLocaleString('en', { style: 'currency', currency });
