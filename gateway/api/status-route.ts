import { nowMicros } from '../../lib/clock.ts';
import { packageVersion } from '../../lib/root.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import type { LatestView } from './view.ts';

/** Version of the contract; in `API-Version`, documents and `welcome`, never in a path. */
export const API_VERSION = '1.0';

/** Receive time of the oldest pill that the log still holds, µs; undefined while not known. */
export type OldestPill = () => number | undefined;

/** `GET /api/status`: is it up, how far is it, how fast is it. Needs no key, and no database. */
export function createStatusRoute(view: LatestView, epoch: string, oldest: OldestPill) {
  return () => {
    const log = view.isConnected() ? 'up' : 'down';
    const last = view.lastReceivedAt();
    const first = oldest();
    const status = !view.isReady() ? 'starting' : log === 'up' ? 'ok' : 'degraded';
    return {
      status,
      version: API_VERSION,
      build: packageVersion,
      time: formatTimestamp(nowMicros()),
      epoch,
      position: view.position(),
      components: { log: { state: log, lag_records: view.lag() } },
      // Measured here, from the gateway's receive time to visible in this view.
      latency: { from: 'received_at', to: 'latest_view', window_s: 60, ...view.latency() },
      last_received_at: last === undefined ? null : formatTimestamp(last),
      oldest_pill_at: first === undefined ? null : formatTimestamp(first),
    };
  };
}
