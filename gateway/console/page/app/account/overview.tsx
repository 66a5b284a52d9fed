import { PageOf } from '../parts/page.tsx';
import { Failure, Skeleton } from '../parts/states.tsx';
import { useLoad } from '../parts/use-load.ts';
import type { Account, Usage } from './bodies.ts';

interface Keys {
  readonly data: readonly { readonly live: boolean; readonly last_used_at: string | null }[];
}

/** What to do next, and the calls of today. */
export default function Overview() {
  const account = useLoad<Account>('/api/account');
  const keys = useLoad<Keys>('/api/keys');
  const usage = useLoad<Usage>('/api/usage?days=7');
  const failed = [account, keys, usage].find(({ failure }) => failure !== undefined);
  if (account.data === undefined || keys.data === undefined || usage.data === undefined) {
    return (
      <PageOf title="Overview">
        {failed?.failure === undefined ? (
          <Skeleton rows={5} />
        ) : (
          <Failure failure={failed.failure} onRetry={failed.reload} />
        )}
      </PageOf>
    );
  }
  const { plan } = account.data;
  const live = keys.data.data.filter((key) => key.live);
  const { used, limit } = usage.data.today;
  const steps = [
    [plan !== null, '/app/plans', 'Choose a plan'],
    [live.length > 0, '/app/settings/api-keys', 'Create an API key'],
    [live.some((key) => key.last_used_at !== null), '/app/settings/api-keys', 'Make a call'],
  ] as const;
  return (
    <PageOf title="Overview">
      {steps.some(([isDone]) => !isDone) && (
        <ol class="steps">
          {steps.map(([isDone, href, title]) => (
            <li key={title} class={isDone ? 'done' : undefined}>
              {isDone ? `${title} (done)` : <a href={href}>{title}</a>}
            </li>
          ))}
        </ol>
      )}
      <dl class="facts">
        <Fact title="Plan" value={plan ?? 'None'} />
        <Fact
          title="Calls today (UTC)"
          value={
            plan === null
              ? 'None'
              : `${count(used)} of ${limit === null ? 'unlimited' : count(limit)}`
          }
        />
        <Fact title="Live keys" value={count(live.length)} />
      </dl>
    </PageOf>
  );
}

function Fact({ title, value }: { readonly title: string; readonly value: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function count(value: number): string {
  return value.toLocaleString('en');
}
