import { useState } from 'preact/hooks';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
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
  const [lower, setLower] = useState<Plan>();
  const [refused, setRefused] = useState<RequestFailed>();
  const failed = [plans, account].find(({ failure }) => failure !== undefined);
  const present = plans.data?.data.findIndex(({ tier }) => tier === account.data?.tier) ?? -1;
  const choose = async (plan: Plan, place: number) => {
    setRefused(undefined);
    // The plans are listed from the lowest tier to the highest.
    if (place < present) return setLower(plan);
    try {
      const { tier } = plan;
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
          {plans.data.data.map((plan, place) => (
            <PlanCard
              key={plan.tier}
              plan={plan}
              isCurrent={place === present}
              onChoose={() => choose(plan, place)}
            />
          ))}
        </div>
      )}
      {lower !== undefined && (
        <LowerPlanDialog
          plan={lower}
          present={plans.data!.data[present]!}
          onClose={() => setLower(undefined)}
        />
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

/** A lower tier costs nothing now: the period that is paid runs to its end. */
function LowerPlanDialog(props: {
  readonly plan: Plan;
  readonly present: Plan;
  readonly onClose: () => void;
}) {
  const { plan, present, onClose } = props;
  const { client } = useSession();
  return (
    <ConfirmDialog
      title={`Change to ${plan.title}`}
      action={`Change to ${plan.title}`}
      onClose={onClose}
      onConfirm={async () => {
        await client.send('PATCH', '/api/subscription', { tier: plan.tier });
        onClose();
      }}
    >
      <p>
        {present.title} stays until the period ends. Then what is over the limits of {plan.title} is
        disabled, not deleted.
      </p>
    </ConfirmDialog>
  );
}

function PlanCard(props: {
  readonly plan: Plan;
  readonly isCurrent: boolean;
  readonly onChoose: () => void;
}) {
  const { plan, isCurrent, onChoose } = props;
  return (
    <article>
      <h2>{plan.title}</h2>
      <p class="price">
        ${plan.usd_per_month} <span>a month</span>
      </p>
      <ul>
        <li>{amount(plan.calls_per_day)} calls a day</li>
        <li>{plan.latency}</li>
        <li>{amount(plan.stream_connections)} stream connections</li>
        <li>{amount(plan.webhooks)} webhooks</li>
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

function amount(limit: number | null): string {
  if (limit === null) return 'Unlimited';
  return limit === 0 ? 'No' : limit.toLocaleString('en');
}
