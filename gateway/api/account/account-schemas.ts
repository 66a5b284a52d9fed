import { Type } from 'typebox';
import { MaybeTime, orNull, Time } from '../server/schemas.ts';

const MaybeText = orNull(Type.String());
const count = (example: number) => Type.Integer({ minimum: 0, examples: [example] });
const text = (example: string) => Type.String({ examples: [example] });
const maybeText = (example: string) => orNull(text(example));

export const Account = Type.Object({
  id: text('acc_x2nt7swd5erz'),
  name: text('Desk 4'),
  status: Type.Enum(['active', 'suspended', 'closed']),
  suspended_reason: MaybeText,
  suspension: orNull(
    Type.Object({
      reason: Type.Enum(['operator', 'payment_due', 'closed']),
      detail: Type.String({ description: 'What happened, and whom to write to' }),
      still_works: Type.Array(Type.String()),
    }),
    'Why the account has no access at all; null if it is not suspended',
  ),
  tier: maybeText('pro'),
  plan: maybeText('Pro API'),
  subscription: maybeText('active'),
  period_end: orNull(text('2026-12-20T01:02:03.000000Z')),
  access_ends_at: MaybeTime,
  limits: Type.Object({
    calls_per_day: orNull(count(10_000)),
    rate_per_s: count(50),
    burst: count(100),
    stream_connections: count(20),
    stream_symbols: count(1_000),
    webhooks: orNull(count(5)),
  }),
  capabilities: Type.Array(Type.String(), { examples: [['latest', 'verify', 'symbols']] }),
  support: text('priority'),
  services: Type.Object({
    api: text('http://127.0.0.1:8080'),
    ingest: text('http://127.0.0.1:8081'),
    stream: text('ws://127.0.0.1:8082/api/stream'),
    docs: text('http://127.0.0.1:8080/docs'),
  }),
  dedicated: Type.Union(
    [
      Type.Array(Type.Object({ name: Type.String(), url: Type.String(), state: Type.String() })),
      Type.Null(),
    ],
    {
      description: 'Dedicated sockets; null while the accounts database is unavailable',
      examples: [[]],
    },
  ),
});

export const AuditEntry = Type.Object({
  at: Time,
  actor: text('user:usr_k3yq7v2bqm9c'),
  action: text('key.revoked'),
  target: maybeText('key_k3yq7v2bqm9c'),
  address: maybeText('203.0.113.7'),
  detail: Type.Object({}),
});

export const UsageToday = Type.Object({
  day: text('2026-11-20'),
  used: count(4_200),
  limit: orNull(count(10_000)),
  remaining: orNull(count(5_800)),
  resets_at: text('2026-11-21T00:00:00.000000Z'),
  projected: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description: 'used / elapsed share of the day; null in the first 72 minutes of the day',
    examples: [9_164],
  }),
});
export const UsageOfKey = Type.Object({
  key_id: text('key_k3yq7v2bqm9c'),
  name: maybeText('desk 4'),
  hint: maybeText('pil_live_…ab12'),
  calls: count(4_200),
  recent_days: Type.Array(Type.Integer({ minimum: 0 }), {
    description: 'Calls of each of the last 14 days, oldest first, whatever `days` is',
    examples: [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1_100, 2_000, 1_100]],
  }),
});
export const UsageHour = Type.Object({
  hour: text('2026-11-20T08:00:00.000000Z'),
  calls: count(420),
});
export const Usage = Type.Object({
  today: UsageToday,
  by_day: Type.Array(Type.Object({ day: text('2026-11-20'), calls: count(4_200) })),
  by_key: Type.Array(UsageOfKey),
  by_endpoint: Type.Array(
    Type.Object({ endpoint: text('GET /api/pills/latest'), calls: count(4_200) }),
  ),
  by_hour: Type.Array(UsageHour, {
    description: 'The last 48 hours, oldest first; the present one is the last',
  }),
});
