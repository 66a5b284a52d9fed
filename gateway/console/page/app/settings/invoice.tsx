import { useRoute } from 'preact-iso';
import type { Account } from '../account/bodies.ts';
import { PageOf } from '../parts/page.tsx';
import { localTime } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenAllLoaded } from '../parts/when-loaded.tsx';
import { type Invoice, invoiceName, moneyOf, planTitle } from './invoice-body.ts';

/** A payment as a document that the browser prints; the navigation is left out on paper. */
export default function InvoicePage() {
  const { params } = useRoute();
  const invoices = useLoad<{ readonly data: readonly Invoice[] }>('/api/subscription/invoices');
  const account = useLoad<Account>('/api/account');
  const print = (
    <button type="button" onClick={() => globalThis.print()}>
      Print
    </button>
  );
  return (
    <PageOf title="Invoice" action={print}>
      <p class="back">
        <a href="/app/settings/billing">Billing</a>
      </p>
      <WhenAllLoaded of={[invoices, account]} rows={8}>
        {([{ data }, owner]) => {
          const one = data.find(({ number }) => String(number) === params.id);
          if (one === undefined) return <p class="empty">There is no invoice of this number.</p>;
          return <InvoiceDocument of={one} owner={owner.name} />;
        }}
      </WhenAllLoaded>
    </PageOf>
  );
}

function InvoiceDocument({ of: one, owner }: { readonly of: Invoice; readonly owner: string }) {
  const money = (cents: number) => moneyOf(cents, one.currency);
  return (
    <div class="document">
      <p class="notice">
        <strong>Test document.</strong> {one.note}
      </p>
      <dl class="terms">
        <dt>Number</dt>
        <dd>{invoiceName(one)}</dd>
        <dt>Date</dt>
        <dd>{localTime(one.at)}</dd>
        <dt>For</dt>
        <dd>{owner}</dd>
        <dt>Period</dt>
        <dd>
          {localTime(one.at)} to {localTime(one.period_end)}
        </dd>
      </dl>
      <table>
        <thead>
          <tr>
            <th>Item</th>
            <th class="number">Amount</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <td>
              {planTitle(one.tier)}, {one.kind === 'renewal' ? 'renewed for ' : ''}one period
            </td>
            <td class="number">{money(one.amount_cents + one.credit_cents)}</td>
          </tr>
          {one.credit_cents > 0 && (
            <tr>
              <td>Credit for the unused part of the period before</td>
              <td class="number">{money(-one.credit_cents)}</td>
            </tr>
          )}
          <tr class="sum">
            <td>Total</td>
            <td class="number">{money(one.amount_cents)}</td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
