import { useState } from 'preact/hooks';
import { ActionButton } from '../parts/action-button.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { PageOf } from '../parts/page.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { localTime } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { useSession } from '../session/session-context.tsx';
import { planTitle } from './invoice-body.ts';
import { InvoicesSection } from './invoices-section.tsx';

interface Subscription {
  readonly tier: string;
  readonly status: 'active' | 'past_due' | 'ended';
  readonly in_force: boolean;
  readonly period_end: string;
  readonly cancel_at_period_end: boolean;
  readonly next_tier: string | null;
  readonly access_ends_at: string | null;
  readonly provider: string;
}

/** Settings, then Billing. */
export default function Billing() {
  const { data, failure, reload } = useLoad<Subscription>('/api/subscription');
  const hasNone = failure?.status === 404;
  return (
    <PageOf title="Billing">
      {failure !== undefined && !hasNone && <Failure failure={failure} onRetry={reload} />}
      {hasNone && (
        <div class="empty">
          <p>
            No subscription yet. <a href="/app/plans">Choose a plan</a>.
          </p>
        </div>
      )}
      {data === undefined && failure === undefined && <Skeleton rows={4} />}
      {data !== undefined && (
        <>
          <Current subscription={data} reload={reload} />
          <InvoicesSection />
        </>
      )}
    </PageOf>
  );
}

function Current(props: { readonly subscription: Subscription; readonly reload: () => void }) {
  const { subscription: one, reload } = props;
  const { client } = useSession();
  const [isCancelling, setCancelling] = useState(false);
  const cancel = async ({ at }: Readonly<Record<string, string>>) => {
    await client.send('POST', '/api/subscription/cancel', { at });
    setCancelling(false);
    reload();
  };
  const undo = async () => {
    if (one.cancel_at_period_end) await client.send('POST', '/api/subscription/resume');
    else await client.send('PATCH', '/api/subscription', { tier: one.tier });
    reload();
  };
  return (
    <>
      {one.provider === 'test' && <p class="notice">Test billing: no money moves.</p>}
      <dl class="facts">
        <div>
          <dt>Plan</dt>
          <dd>{planTitle(one.tier)}</dd>
        </div>
        <div>
          <dt>State</dt>
          <dd>{one.status.replace('_', ' ')}</dd>
        </div>
        <div>
          <dt>{one.cancel_at_period_end ? 'Ends' : 'Renews'}</dt>
          <dd>{localTime(one.period_end)}</dd>
        </div>
      </dl>
      <p>{nextStep(one)}</p>
      <p class="buttons">
        {one.status !== 'ended' && (one.cancel_at_period_end || one.next_tier !== null) && (
          <ActionButton onClick={undo}>Keep {planTitle(one.tier)}</ActionButton>
        )}
        {one.status !== 'ended' && !one.cancel_at_period_end && (
          <button type="button" class="danger" onClick={() => setCancelling(true)}>
            Cancel subscription
          </button>
        )}
      </p>
      {isCancelling && (
        <ConfirmDialog
          title="Cancel subscription"
          action="Cancel subscription"
          onConfirm={cancel}
          onClose={() => setCancelling(false)}
        >
          <fieldset>
            <legend>When</legend>
            <label>
              <input type="radio" name="at" value="period_end" defaultChecked />
              At the end of the paid period, {localTime(one.period_end)}
            </label>
            <label>
              <input type="radio" name="at" value="now" />
              Now: calls are refused within a second, and nothing is paid back
            </label>
          </fieldset>
        </ConfirmDialog>
      )}
    </>
  );
}

function nextStep(one: Subscription) {
  if (one.status === 'ended') return <a href="/app/plans">Choose a plan</a>;
  if (one.status === 'past_due') {
    const until = one.access_ends_at === null ? 'soon' : localTime(one.access_ends_at);
    return `The last payment failed. Access ends ${until}.`;
  }
  if (one.cancel_at_period_end) return 'Cancelled: keys work until the period ends.';
  if (one.next_tier !== null) return `${planTitle(one.next_tier)} from the next period on.`;
  return <a href="/app/plans">Change the plan</a>;
}
