import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import type { Account } from './bodies.ts';

const EVERY_MS = 60_000;

/** What bars the account on every page: a suspension, or a payment that is overdue. */
export function AccountNotice() {
  const { data: account } = useLoad<Account>('/api/account', EVERY_MS);
  if (account === undefined) return null;
  if (account.suspension !== null) {
    return (
      <p class="notice bad" role="status">
        The account is suspended. {account.suspension.detail}{' '}
        <a href="/app/support">Write to support</a>.
      </p>
    );
  }
  if (account.subscription !== 'past_due') return null;
  return (
    <p class="notice bad" role="status">
      The last payment failed. Access ends <Time of={account.access_ends_at} otherwise="soon" />:
      see <a href="/app/settings/billing">Billing</a>.
    </p>
  );
}
