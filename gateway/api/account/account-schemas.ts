import { Type } from 'typebox';
import { MaybeTime, Time } from './schemas.ts';

const MaybeText = Type.Union([Type.String(), Type.Null()]);
const MaybeCount = Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]);
const Count = Type.Integer({ minimum: 0 });

export const Account = Type.Object({
  id: Type.String(),
  name: Type.String(),
  status: Type.Enum(['active', 'suspended', 'closed']),
  suspended_reason: MaybeText,
  tier: MaybeText,
  plan: MaybeText,
  subscription: MaybeText,
  period_end: MaybeTime,
  access_ends_at: MaybeTime,
  limits: Type.Object({
    calls_per_day: MaybeCount,
    rate_per_s: Count,
    burst: Count,
    stream_connections: Count,
    stream_symbols: Count,
    webhooks: MaybeCount,
  }),
  capabilities: Type.Array(Type.String()),
  support: Type.String(),
  services: Type.Object({
    api: Type.String(),
    ingest: Type.String(),
    stream: Type.String(),
    docs: Type.String(),
  }),
  dedicated: Type.Union(
    [
      Type.Array(Type.Object({ name: Type.String(), url: Type.String(), state: Type.String() })),
      Type.Null(),
    ],
    { description: 'Dedicated sockets; null while they cannot be looked up' },
  ),
});

export const ACCOUNT_EXAMPLE = {
  id: 'acc_x2nt7swd5erz',
  name: 'Desk 4',
  status: 'active',
  suspended_reason: null,
  tier: 'pro',
  plan: 'Pro API',
  subscription: 'active',
  period_end: '2026-12-20T01:02:03.000Z',
  access_ends_at: null,
  limits: {
    calls_per_day: 10_000,
    rate_per_s: 50,
    burst: 100,
    stream_connections: 20,
    stream_symbols: 1_000,
    webhooks: 5,
  },
  capabilities: ['latest', 'verify', 'symbols', 'history', 'analytics', 'stream', 'webhooks'],
  support: 'priority',
  services: {
    api: 'http://127.0.0.1:8080',
    ingest: 'http://127.0.0.1:8081',
    stream: 'ws://127.0.0.1:8082/api/stream',
    docs: 'http://127.0.0.1:8080/docs',
  },
  dedicated: [],
};

export const AuditPage = Type.Object({
  data: Type.Array(
    Type.Object({
      at: Time,
      actor: Type.String(),
      action: Type.String(),
      target: MaybeText,
      address: MaybeText,
      detail: Type.Object({}),
    }),
  ),
  next: Type.Union([Type.String(), Type.Null()], { description: '`before` of the next page' }),
});

export const AUDIT_EXAMPLE = {
  data: [
    {
      at: '2026-11-20T01:02:03.000Z',
      actor: 'user:usr_k3yq7v2bqm9c',
      action: 'key.revoked',
      target: 'key_k3yq7v2bqm9c',
      address: '203.0.113.7',
      detail: {},
    },
  ],
  next: null,
};

export const Usage = Type.Object({
  today: Type.Object({
    day: Type.String(),
    used: Count,
    limit: MaybeCount,
    remaining: MaybeCount,
    resets_at: Time,
    projected: Type.Union([Count, Type.Null()], {
      description: 'used / elapsed share of the day; null in its first 72 minutes',
    }),
  }),
  by_day: Type.Array(Type.Object({ day: Type.String(), calls: Type.Integer() })),
  by_key: Type.Array(
    Type.Object({
      key_id: Type.String(),
      name: MaybeText,
      hint: MaybeText,
      calls: Type.Integer(),
    }),
  ),
  by_endpoint: Type.Array(Type.Object({ endpoint: Type.String(), calls: Type.Integer() })),
});

export const USAGE_EXAMPLE = {
  today: {
    day: '2026-11-20',
    used: 4_200,
    limit: 10_000,
    remaining: 5_800,
    resets_at: '2026-11-21T00:00:00.000Z',
    projected: 9_164,
  },
  by_day: [{ day: '2026-11-20', calls: 4_200 }],
  by_key: [{ key_id: 'key_k3yq7v2bqm9c', name: 'desk 4', hint: 'pil_live_…ab12', calls: 4_200 }],
  by_endpoint: [{ endpoint: 'GET /api/pills/latest', calls: 4_200 }],
};
