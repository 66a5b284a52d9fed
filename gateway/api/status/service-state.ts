import type { LatestLag } from '../pills/latest-lag.ts';
import type { LatestView } from '../pills/latest-view.ts';

export type ServiceState = ReturnType<typeof createServiceState>;

/**
 * State of the service as this process sees it.
 * @param sources.accounts whether the accounts database answered within the last second
 */
export function createServiceState(sources: {
  readonly view: Pick<LatestView, 'isConnected' | 'isReady'>;
  readonly lag: () => LatestLag;
  readonly accounts: () => 'up' | 'down';
}) {
  const { view, lag, accounts } = sources;
  const failing = () => {
    const failed: string[] = [];
    if (!view.isConnected()) failed.push('log');
    if (lag().state === 'stalled') failed.push('latest');
    if (accounts() === 'down') failed.push('accounts');
    return failed;
  };
  return {
    components: () => ({
      log: { state: view.isConnected() ? 'up' : 'down' },
      latest: lag(),
      accounts: { state: accounts() },
    }),
    status(): 'starting' | 'ok' | 'degraded' {
      if (!view.isReady()) return 'starting';
      return failing().length === 0 ? 'ok' : 'degraded';
    },
    /** Components that fail now; undefined while the process starts. */
    failing: () => (view.isReady() ? failing() : undefined),
  };
}
