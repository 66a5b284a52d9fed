import { useEffect, useState } from 'preact/hooks';
import type { Account, Usage } from '../account/bodies.ts';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import type { PlatformStatus } from '../service/bodies.ts';
import { useSession } from '../session/session-context.tsx';
import { Notice } from './notice.tsx';

const EVERY_MS = 30_000;
/** A page does not wait longer for what may be above it. */
const WAIT_MAX_MS = 1_000;

/**
 * What bars or limits the account on every page, and what is wrong with the platform.
 * @param props.onSettled called once all of it is known, so that nothing moves a page later
 */
export function Notices({ onSettled }: { readonly onSettled: () => void }) {
  const account = useLoad<Account>('/api/account', EVERY_MS);
  const usage = useLoad<Usage>('/api/usage?days=1', EVERY_MS);
  const status = useLoad<PlatformStatus>('/api/status', EVERY_MS);
  const isSettled = [account, usage, status].every(
    ({ data, failure }) => data !== undefined || failure !== undefined,
  );
  useEffect(() => {
    if (isSettled) return onSettled();
    const timer = setTimeout(onSettled, WAIT_MAX_MS);
    return () => clearTimeout(timer);
  }, [isSettled]);
  return (
    <div class="notices">
      <Connection />
      {status.data !== undefined && <Platform status={status.data} />}
      {account.data !== undefined && <Access account={account.data} />}
      {usage.data !== undefined && <Quota today={usage.data.today} />}
    </div>
  );
}

/** Offline: no request is answered. */
function Connection() {
  const { client } = useSession();
  const [isReached, setReached] = useState(client.reach.isReached);
  useEffect(() => {
    const { reach } = client;
    const onOffline = () => reach.set(false);
    // Whatever is answered ends the notice; the pages read their data again by themselves.
    const onOnline = () => void client.readSession().catch(() => undefined);
    addEventListener('offline', onOffline);
    addEventListener('online', onOnline);
    const end = reach.follow(setReached);
    return () => {
      removeEventListener('offline', onOffline);
      removeEventListener('online', onOnline);
      end();
    };
  }, [client]);
  if (isReached) return null;
  return (
    <Notice kind="bad" title="Offline">
      The platform does not answer. What is shown may be old; it is read again every 5 s.
    </Notice>
  );
}

/** Behind, or read-only: a part of the platform does not work. */
function Platform({ status: { status, components, last_received_at: last } }: PlatformProps) {
  if (status === 'ok') return null;
  if (status === 'starting') {
    return (
      <Notice title="Starting">The platform is starting: data appears within a minute.</Notice>
    );
  }
  const isBehind = components.log?.state === 'down' || components.latest?.state === 'stalled';
  return (
    <>
      {isBehind && (
        <Notice kind="bad" title="Behind">
          New pills do not arrive at present, and none is lost: they follow in order. The newest one
          is of <Time of={last} otherwise="an unknown time" />. See <a href="/app/status">Status</a>
          .
        </Notice>
      )}
      {components.accounts?.state === 'down' && (
        <Notice kind="bad" title="Read-only">
          Accounts cannot be changed at present, and pages of the account may be old. Keys and open
          sockets go on working.
        </Notice>
      )}
    </>
  );
}

interface PlatformProps {
  readonly status: PlatformStatus;
}

/** A suspension, or a payment that is overdue. */
function Access({ account }: { readonly account: Account }) {
  if (account.suspension !== null) {
    return (
      <Notice kind="bad" title="Suspended">
        The account is suspended. {account.suspension.detail}{' '}
        <a href="/app/support">Write to support</a>.
      </Notice>
    );
  }
  if (account.subscription !== 'past_due') return null;
  return (
    <Notice kind="bad" title="Payment overdue">
      The last payment failed. Access ends <Time of={account.access_ends_at} otherwise="soon" />:
      see <a href="/app/settings/billing">Billing</a>.
    </Notice>
  );
}

/** The calls of the day are used up. */
function Quota({ today: { used, limit, resets_at: resets } }: Pick<Usage, 'today'>) {
  if (limit === null || limit === 0 || used < limit) return null;
  return (
    <Notice kind="bad" title="Quota used up">
      All {limit.toLocaleString('en')} calls of today are used: reads of pills and analytics are
      refused until <Time of={resets} />. Open sockets and webhooks go on.{' '}
      <a href="/app/plans">See the plans</a>.
    </Notice>
  );
}
