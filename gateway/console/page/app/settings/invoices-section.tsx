import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Invoice, invoiceName, moneyOf, planTitle } from './invoice-body.ts';

/** The payments so far, each with its document. */
export function InvoicesSection() {
  const invoices = useLoad<{ readonly data: readonly Invoice[] }>('/api/subscription/invoices');
  return (
    <section class="part">
      <h2>Invoices</h2>
      <WhenLoaded of={invoices} rows={3}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="hint">None yet: each payment gets a document.</p>
          ) : (
            <table class="stacked">
              <thead>
                <tr>
                  <th>Document</th>
                  <th>Paid</th>
                  <th>For</th>
                  <th class="number">Amount</th>
                </tr>
              </thead>
              <tbody>
                {data.map((one) => (
                  <tr key={one.number}>
                    <td data-title="Document">
                      <a href={`/app/settings/billing/${one.number}`}>{invoiceName(one)}</a>
                    </td>
                    <td data-title="Paid">
                      <Time of={one.at} />
                    </td>
                    <td data-title="For">
                      {planTitle(one.tier)}
                      {one.kind === 'renewal' && ', renewed'}
                    </td>
                    <td data-title="Amount" class="number">
                      {moneyOf(one.amount_cents, one.currency)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </WhenLoaded>
    </section>
  );
}
