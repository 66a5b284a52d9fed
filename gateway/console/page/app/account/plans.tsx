import { useState } from 'preact/hooks';
import { PageOf } from '../parts/page.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { useLoad } from '../parts/use-load.ts';
import { asFailure, type RequestFailed } from '../session/problem.ts';
import { useSession } from '../session/session-context.tsx';
import type { Account, Checkout, Plan } from './bodies.ts';
import { CheckoutDialog } from './checkout-dialog.tsx';

/** The plans, and the checkout of one. */
export default function Plans() {
  const { client } = useSession();
  const plans = useLoad<{ readonly data: readonly Plan[] }>('/api/plans');
  const account = useLoad<Account>('/api/account');
  const [checkout, setCheckout] = useState<Checkout>();
  const [refused, setRefused] = useState<RequestFailed>();
  const failed = [plans, account].find(({ failure }) => failure !== undefined);
  const choose = async (tier: string) => {
    setRefused(undefined);
    try {
      setCheckout(await client.send<Checkout>('POST', '/api/subscription/checkout', { tier }));
    } catch (error) {
      setRefused(asFailure(error));
    }
  };
  return (
    <PageOf title="Plans">
      {failed?.failure !== undefined && (
        <Failure failure={failed.failure} onRetry={failed.reload} />
      )}
      {refused !== undefined && <Failure failure={refused} />}
      {plans.data === undefined || account.data === undefined ? (
        failed === undefined && <Skeleton rows={8} />
      ) : (
        <div class="plans">
          {plans.data.data.map((plan) => (
            <PlanCard
              key={plan.tier}
              plan={plan}
              isCurrent={plan.tier === account.data!.tier}
              onChoose={() => choose(plan.tier)}
            />
          ))}
        </div>
      )}
      {checkout !== undefined && (
        <CheckoutDialog
          checkout={checkout}
          onClose={() => setCheckout(undefined)}
          onPaid={account.reload}
        />
      )}
    </PageOf>
  );
}

function PlanCard(props: {
  readonly plan: Plan;
  readonly isCurrent: boolean;
  readonly onChoose: () => void;
}) {
  const { plan, isCurrent, onChoose } = props;
  const calls = plan.calls_per_day?.toLocaleString('en') ?? 'Unlimited';
  return (
    <article>
      <h2>{plan.title}</h2>
      <p class="price">
        ${plan.usd_per_month} <span>a month</span>
      </p>
      <ul>
        <li>{calls} calls a day</li>
        <li>{plan.latency}</li>
        <li>{plan.stream_connections.toLocaleString('en')} stream connections</li>
        <li>{plan.webhooks ?? 'Unlimited'} webhooks</li>
        <li>Support: {plan.support}</li>
      </ul>
      {isCurrent ? (
        <p class="current">Your plan</p>
      ) : (
        <button type="button" aria-label={`Choose ${plan.title}`} onClick={onChoose}>
          Choose
        </button>
      )}
    </article>
  );
}
