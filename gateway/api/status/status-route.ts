import { Type } from 'typebox';
import { NOTICE_SEVERITIES } from '../../../domain/accounts/operator-notices.ts';
import { packageVersion } from '../../../lib/files/package-root.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import { formatTimestamp } from '../../../schemas/timestamp.ts';
import { API_VERSION } from '../../http/problems.ts';
import { LATENCY_WINDOW_MS } from '../limits.ts';
import type { LatestView } from '../pills/latest-view.ts';
import { PositionSchema } from '../pills/pill-schemas.ts';
import { OPEN } from '../server/access-rule.ts';
import { defineRoute } from '../server/define-route.ts';
import { integers, numbers, numbersOrNull, texts } from '../server/example.ts';
import { orNull } from '../server/schemas.ts';
import type { ServiceState } from './service-state.ts';
import type { StatusNotices } from './status-notices.ts';

const Schema = Type.Object({
  status: Type.Enum(['starting', 'ok', 'degraded'], { examples: ['ok'] }),
  ...texts({ version: API_VERSION, build: '0.1.0', time: '2026-11-20T01:02:03.000000Z' }),
  ...texts({ epoch: 'k7f3' }),
  position: PositionSchema,
  components: Type.Record(
    Type.String(),
    Type.Object({ state: Type.String(), lag_records: Type.Optional(Type.Integer()) }),
    {
      examples: [
        {
          log: { state: 'up' },
          latest: { state: 'up', lag_records: 0 },
          accounts: { state: 'up' },
        },
      ],
    },
  ),
  latency: Type.Object({
    ...texts({ from: 'received_at', to: 'latest_view' }),
    ...numbers({ window_s: 60 }),
    ...integers({ count: 6_000 }),
    ...numbersOrNull({ p50_ms: 2.9, p99_ms: 8.4 }),
  }),
  last_received_at: orNull(Type.String({ examples: ['2026-11-20T01:02:02.880000Z'] })),
  oldest_pill_at: orNull(Type.String({ examples: ['2026-11-01T00:00:00.000000Z'] })),
  notices: Type.Array(
    Type.Object({
      id: Type.String(),
      severity: Type.Enum([...NOTICE_SEVERITIES]),
      message: Type.String(),
      published_at: Type.String(),
      until: orNull(Type.String()),
    }),
    { examples: [[]] },
  ),
});

/**
 * `GET /api/status`: state, position and latency. Needs neither a key nor a database.
 * @param sources.oldest append time of the oldest record in the log, µs; undefined while unknown
 * @param sources.notices as last read, so available while PostgreSQL is away
 */
export function statusRoute(sources: {
  readonly view: LatestView;
  readonly epoch: string;
  readonly oldest: () => number | undefined;
  readonly state: ServiceState;
  readonly notices: () => StatusNotices;
}) {
  const { view, epoch, oldest, state, notices } = sources;
  return defineRoute({
    method: 'GET',
    url: '/api/status',
    tag: 'service',
    summary: 'Read state, position and latency of the service',
    access: OPEN,
    answers: {
      200: { description: 'The state of this process and of its sources.', schema: Schema },
    },
    handle() {
      const last = view.lastReceivedAt();
      const first = oldest();
      return {
        status: state.status(),
        version: API_VERSION,
        build: packageVersion,
        time: formatTimestamp(nowMicros()),
        epoch,
        position: view.position(),
        components: state.components(),
        // Measured in this process, from the gateway's receive time to visibility in the view.
        latency: {
          from: 'received_at',
          to: 'latest_view',
          window_s: LATENCY_WINDOW_MS / 1000,
          ...view.latency(),
        },
        last_received_at: last === undefined ? null : formatTimestamp(last),
        oldest_pill_at: first === undefined ? null : formatTimestamp(first),
        notices: notices(),
      };
    },
  });
}
