import { Type } from 'typebox';
import { dedicatedUrl } from '../../../domain/dedicated/dedicated-url.ts';
import type { DedicatedStream } from '../../../domain/dedicated/stream-row.ts';
import { createDedicatedStreams } from '../../../domain/dedicated/streams.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { bodyOf } from '../../http/answer-body.ts';
import type { ApiConfig } from '../config.ts';
import { MaybeTime, orNull, Time } from '../server/schemas.ts';

export type Dedicated = ReturnType<typeof openDedicated>;

/** Dedicated sockets, and where customers find them. */
export function openDedicated(db: Database, { ports, max, url }: ApiConfig['dedicated']) {
  return {
    ...createDedicatedStreams(db, ports, max),
    urlOf: (stream: DedicatedStream) => dedicatedUrl(url, stream),
  };
}

const Count = Type.Integer({ minimum: 0 });

const StateName = Type.Enum(['starting', 'ready', 'failing', 'stopped', 'unknown'], {
  examples: ['ready'],
  description:
    'failing: the process ended and is being restarted; stopped: the account is not entitled to ' +
    'it now, or it was removed; unknown: no report for 15 s, though it may be working',
});

export const DedicatedSocket = Type.Object({
  name: Type.String({
    description: 'Opaque; grants no access by itself',
    examples: ['ded_k3yq7v2bqm9c'],
  }),
  url: Type.String({
    description:
      'Stays the same until removal; authenticates like the shared stream. A rotated socket has ' +
      'another name, at the same host if the operator has configured one',
    examples: ['ws://127.0.0.1:8317/api/stream/dedicated/ded_k3yq7v2bqm9c'],
  }),
  label: Type.String({ examples: ['Tokyo desk'] }),
  state: StateName,
  reason: orNull(Type.String({ description: 'Why the socket is not ready' })),
  since: Time,
  restarts: Count,
  connections: Type.Integer({ minimum: 0, examples: [2] }),
  lag_records: orNull(
    Type.Integer({
      minimum: 0,
      description: 'Records of the log not read yet; null while the log is unavailable',
      examples: [0],
    }),
  ),
  queue_bytes: Type.Integer({ minimum: 0, description: 'Bytes queued for its clients' }),
  queue_ms: Type.Integer({ minimum: 0, description: 'Age of the oldest queued frame' }),
  reported_at: MaybeTime,
  created_at: Time,
  replaced_by: orNull(Type.String()),
  expires_at: MaybeTime,
  removed_at: MaybeTime,
});

export function socketBody(stream: DedicatedStream, { urlOf }: Pick<Dedicated, 'urlOf'>) {
  return bodyOf(DedicatedSocket, { ...stream, url: urlOf(stream) });
}
