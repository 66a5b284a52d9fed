import { Type } from 'typebox';
import type { DedicatedStream } from '../../../lib/dedicated/stream-row.ts';
import { MaybeTime, Time } from '../account/schemas.ts';
import type { Dedicated } from './dedicated.ts';

const Count = Type.Integer({ minimum: 0 });
const MaybeText = Type.Union([Type.String(), Type.Null()]);

export const StateName = Type.Enum(['starting', 'ready', 'failing', 'stopped', 'unknown'], {
  description:
    'failing: its process ended and is being started again; stopped: the account may not have it ' +
    'now, or it was removed; unknown: nobody has told of it for 15 s, it may work all the same',
});

export const DedicatedSocket = Type.Object({
  name: Type.String({ description: 'Opaque; opens nothing by itself' }),
  url: Type.String({ description: 'Stays the same until it is removed; takes keys as ever' }),
  label: Type.String(),
  state: StateName,
  reason: Type.Union([Type.String(), Type.Null()], { description: 'Why it is not ready' }),
  since: Time,
  restarts: Count,
  connections: Count,
  lag_records: Type.Union([Count, Type.Null()], {
    description: 'Records of the log that it has not read yet; null while the log is away',
  }),
  queue_bytes: Type.Integer({ minimum: 0, description: 'What waits for its readers' }),
  queue_ms: Type.Integer({ minimum: 0, description: 'How long the oldest of that has waited' }),
  reported_at: MaybeTime,
  created_at: Time,
  replaced_by: MaybeText,
  expires_at: MaybeTime,
  removed_at: MaybeTime,
});

export const SOCKET_EXAMPLE = {
  name: 'ded_k3yq7v2bqm9c',
  url: 'ws://127.0.0.1:8317/api/stream/dedicated/ded_k3yq7v2bqm9c',
  label: 'Tokyo desk',
  state: 'ready',
  reason: null,
  since: '2026-11-20T01:02:04.100Z',
  restarts: 0,
  connections: 2,
  lag_records: 0,
  queue_bytes: 0,
  queue_ms: 0,
  reported_at: '2026-11-20T01:04:00.000Z',
  created_at: '2026-11-20T01:02:03.000Z',
  replaced_by: null,
  expires_at: null,
  removed_at: null,
};

export function socketBody(stream: DedicatedStream, { urlOf }: Pick<Dedicated, 'urlOf'>) {
  return {
    name: stream.name,
    url: urlOf(stream),
    label: stream.label,
    state: stream.state,
    reason: stream.reason ?? null,
    since: stream.since.toISOString(),
    restarts: stream.restarts,
    connections: stream.connections,
    lag_records: stream.lagRecords ?? null,
    queue_bytes: stream.queueBytes,
    queue_ms: stream.queueMs,
    reported_at: stream.reportedAt?.toISOString() ?? null,
    created_at: stream.createdAt.toISOString(),
    replaced_by: stream.replacedBy ?? null,
    expires_at: stream.expiresAt?.toISOString() ?? null,
    removed_at: stream.removedAt?.toISOString() ?? null,
  };
}
