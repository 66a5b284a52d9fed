import { nowMicros } from '../../lib/clock.ts';
import { packageVersion } from '../../lib/root.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { API_VERSION } from '../http/problems.ts';
import { LATENCY_WINDOW_MS } from './limits.ts';
import type { Progress } from './progress.ts';
import type { LatestView } from './view.ts';

/** Append time of the oldest record that the log still holds, µs; undefined while not known. */
export type OldestPill = () => number | undefined;

/** `GET /api/status`: is it up, how far is it, how fast is it. Needs no key, and no database. */
export function createStatusRoute(
  view: LatestView,
  epoch: string,
  oldest: OldestPill,
  progress: () => Progress,
) {
  return () => {
    const log = view.isConnected() ? 'up' : 'down';
    const last = view.lastReceivedAt();
    const first = oldest();
    const latest = progress();
    const isWell = log === 'up' && latest.state !== 'stalled';
    const status = !view.isReady() ? 'starting' : isWell ? 'ok' : 'degraded';
    return {
      status,
      version: API_VERSION,
      build: packageVersion,
      time: formatTimestamp(nowMicros()),
      epoch,
      position: view.position(),
      components: { log: { state: log }, latest },
      // Measured here, from the gateway's receive time to visible in this view.
      latency: {
        from: 'received_at',
        to: 'latest_view',
        window_s: LATENCY_WINDOW_MS / 1000,
        ...view.latency(),
      },
      last_received_at: last === undefined ? null : formatTimestamp(last),
      oldest_pill_at: first === undefined ? null : formatTimestamp(first),
    };
  };
}
