import { useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import { useSession } from '../session/session-context.tsx';
import type { Account, Checkout } from './bodies.ts';

/** How often the account is read until a payment, which takes a second, is in effect. */
const READ_EVERY_MS = 250;
const READS_MAX = 40;

/** The amount with its credit, before anything is paid. */
export function CheckoutDialog(props: {
  readonly checkout: Checkout;
  readonly onClose: () => void;
  readonly onPaid: () => void;
}) {
  const { checkout, onClose, onPaid } = props;
  const { client } = useSession();
  const [isPaid, setPaid] = useState(false);
  const { amount_cents: amount, credit_cents: credit, currency, tier } = checkout;
  const money = (cents: number) =>
    (cents / 100).toLocaleString('en', { style: 'currency', currency });
  const pay = async () => {
    const path = `/api/billing/test/checkouts/${checkout.checkout_id}`;
    await client.send('POST', path, { outcome: 'paid' });
    for (let read = 0; read < READS_MAX; read += 1) {
      const account = await client.send<Account>('GET', '/api/account');
      if (account.tier === tier) break;
      await new Promise((resolve) => setTimeout(resolve, READ_EVERY_MS));
    }
    setPaid(true);
    onPaid();
  };
  if (isPaid) {
    return (
      <Dialog title="Plan in effect" onClose={onClose}>
        <p>
          Next: <a href="/app/settings/api-keys">create an API key</a>.
        </p>
      </Dialog>
    );
  }
  return (
    <Dialog title="Checkout" onClose={onClose}>
      <dl class="facts">
        <div>
          <dt>To pay now</dt>
          <dd>{money(amount)}</dd>
        </div>
        {credit > 0 && (
          <div>
            <dt>Credit for the unused part of the present period</dt>
            <dd>{money(credit)}</dd>
          </div>
        )}
        <div>
          <dt>Period</dt>
          <dd>{checkout.period_days} days from today</dd>
        </div>
      </dl>
      {checkout.takes_money ? (
        <p>
          <a class="main" href={checkout.url} target="_self">
            Pay
          </a>
        </p>
      ) : (
        <>
          <p class="notice">Test billing: no money moves, and no card is asked for.</p>
          <Form action="Pay (test)" onSubmit={pay} />
        </>
      )}
    </Dialog>
  );
}
