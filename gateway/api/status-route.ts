import { Type } from 'typebox';

import { nowMicros } from '../../lib/clock.ts';
import { packageVersion } from '../../lib/root.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { API_VERSION } from '../http/problems.ts';
import { OPEN } from './access-rule.ts';
import { endpoint } from './endpoint.ts';
import { LATENCY_WINDOW_MS } from './limits.ts';
import type { PublicNotice } from './notices.ts';
import { POSITION_EXAMPLE, PositionSchema } from './pill-schemas.ts';
import type { Progress } from './progress.ts';
import type { LatestView } from './view.ts';

/** Append time of the oldest record that the log still holds, µs; undefined while not known. */
export type OldestPill = () => number | undefined;

const Schema = Type.Object({
  status: Type.Union(['starting', 'ok', 'degraded'].map((name) => Type.Literal(name))),
  version: Type.String(),
  build: Type.String(),
  time: Type.String(),
  epoch: Type.String(),
  position: PositionSchema,
  components: Type.Record(
    Type.String(),
    Type.Object({ state: Type.String(), lag_records: Type.Optional(Type.Integer()) }),
  ),
  latency: Type.Object({
    from: Type.String(),
    to: Type.String(),
    window_s: Type.Number(),
    count: Type.Integer(),
    p50_ms: Type.Union([Type.Number(), Type.Null()]),
    p99_ms: Type.Union([Type.Number(), Type.Null()]),
  }),
  last_received_at: Type.Union([Type.String(), Type.Null()]),
  oldest_pill_at: Type.Union([Type.String(), Type.Null()]),
  notices: Type.Array(
    Type.Object({
      id: Type.String(),
      severity: Type.Union(['info', 'warning', 'outage'].map((name) => Type.Literal(name))),
      message: Type.String(),
      published_at: Type.String(),
      until: Type.Union([Type.String(), Type.Null()]),
    }),
  ),
});

const EXAMPLE = {
  status: 'ok',
  version: API_VERSION,
  build: '0.1.0',
  time: '2026-11-20T01:02:03.000000Z',
  epoch: 'k7f3',
  position: POSITION_EXAMPLE,
  components: {
    log: { state: 'up' },
    latest: { state: 'up', lag_records: 0 },
    accounts: { state: 'up' },
  },
  latency: {
    ...{ from: 'received_at', to: 'latest_view', window_s: 60 },
    ...{ count: 6_000, p50_ms: 2.9, p99_ms: 8.4 },
  },
  last_received_at: '2026-11-20T01:02:02.880000Z',
  oldest_pill_at: '2026-11-01T00:00:00.000000Z',
  notices: [],
};

/** What the status is made of, beside the view. */
export interface StatusSources {
  readonly view: LatestView;
  readonly epoch: string;
  readonly oldest: OldestPill;
  readonly progress: () => Progress;
  /** Whether the accounts answered within the last second. */
  readonly accounts: () => 'up' | 'down';
  /** As last read: known also while PostgreSQL is away. */
  readonly notices: () => readonly PublicNotice[];
}

/** `GET /api/status`: is it up, how far is it, how fast is it. Needs no key, and no database. */
export function statusEndpoint({ view, epoch, oldest, progress, ...rest }: StatusSources) {
  return endpoint({
    method: 'GET',
    url: '/api/status',
    tag: 'service',
    summary: 'How the service is, how far, how fast',
    access: OPEN,
    answers: {
      200: {
        description: 'The state of this process and of what it reads.',
        schema: Schema,
        example: EXAMPLE,
      },
    },
    handle() {
      const log = view.isConnected() ? 'up' : 'down';
      const last = view.lastReceivedAt();
      const first = oldest();
      const latest = progress();
      const isWell = log === 'up' && latest.state !== 'stalled' && rest.accounts() === 'up';
      const status = !view.isReady() ? 'starting' : isWell ? 'ok' : 'degraded';
      return {
        status,
        version: API_VERSION,
        build: packageVersion,
        time: formatTimestamp(nowMicros()),
        epoch,
        position: view.position(),
        components: { log: { state: log }, latest, accounts: { state: rest.accounts() } },
        // Measured here, from the gateway's receive time to visible in this view.
        latency: {
          from: 'received_at',
          to: 'latest_view',
          window_s: LATENCY_WINDOW_MS / 1000,
          ...view.latency(),
        },
        last_received_at: last === undefined ? null : formatTimestamp(last),
        oldest_pill_at: first === undefined ? null : formatTimestamp(first),
        notices: rest.notices(),
      };
    },
  });
}
