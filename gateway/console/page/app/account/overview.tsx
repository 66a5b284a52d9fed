import { Facts } from '../parts/facts.tsx';
import { PageOf } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenAllLoaded } from '../parts/when-loaded.tsx';
import type { PlatformStatus } from '../service/bodies.ts';
import type { Account, Usage } from './bodies.ts';
import { ConnectionsSection } from './connections-section.tsx';

interface Keys {
  readonly data: readonly { readonly live: boolean; readonly last_used_at: string | null }[];
}

const EVERY_MS = 30_000;

/** What to do next, the calls of today, the own connections, and notices of the operator. */
export default function Overview() {
  const account = useLoad<Account>('/api/account', EVERY_MS);
  const keys = useLoad<Keys>('/api/keys', EVERY_MS);
  const usage = useLoad<Usage>('/api/usage?days=7', EVERY_MS);
  return (
    <PageOf title="Overview">
      <WhenAllLoaded of={[account, keys, usage]} rows={6}>
        {([owner, { data }, { today }]) => {
          const live = data.filter((key) => key.live);
          return (
            <>
              <NextSteps hasPlan={owner.plan !== null} live={live} />
              <Facts
                of={[
                  ['Plan', owner.plan ?? 'None'],
                  ['Calls today (UTC)', owner.plan === null ? 'None' : callsOf(today)],
                  ['Live keys', count(live.length)],
                ]}
              />
              {owner.limits.stream_connections > 0 && (
                <ConnectionsSection limit={owner.limits.stream_connections} />
              )}
            </>
          );
        }}
      </WhenAllLoaded>
      <OperatorNotices />
    </PageOf>
  );
}

/** Until a key has been used: three steps, of which the first open one is the next. */
function NextSteps(props: { readonly hasPlan: boolean; readonly live: Keys['data'] }) {
  const { hasPlan, live } = props;
  const steps = [
    [hasPlan, '/app/plans', 'Choose a plan', 'Test billing: no money moves.'],
    [live.length > 0, '/app/settings/api-keys', 'Create an API key', 'It is shown once.'],
    [
      live.some((key) => key.last_used_at !== null),
      '/app/docs?op=getPillsLatest',
      'Make a call',
      'With curl, TypeScript or Python, or try one here.',
    ],
  ] as const;
  const next = steps.findIndex(([isDone]) => !isDone);
  if (next < 0) return null;
  return (
    <ol class="steps" aria-label="Next steps">
      {steps.map(([isDone, href, title, hint], at) => (
        <li key={title} class={isDone ? 'done' : at === next ? 'next' : undefined}>
          {isDone ? `${title} (done)` : <a href={href}>{title}</a>}
          {at === next && <span class="hint">{hint}</span>}
        </li>
      ))}
    </ol>
  );
}

function OperatorNotices() {
  const status = useLoad<PlatformStatus>('/api/status', EVERY_MS);
  if (status.data === undefined) return null;
  return (
    <section class="part">
      <h2>Notices</h2>
      {status.data.notices.length === 0 && <p class="hint">None at present.</p>}
      {status.data.notices.map(({ id, message, severity, published_at: at }) => (
        <p key={id} class="notice">
          <strong>{severity}</strong> {message} (<Time of={at} />)
        </p>
      ))}
    </section>
  );
}

function callsOf({ used, limit }: Usage['today']): string {
  return `${count(used)} of ${limit === null ? 'unlimited' : count(limit)}`;
}

function count(value: number): string {
  return value.toLocaleString('en');
}
