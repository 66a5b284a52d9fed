import { suspensionOf } from '../../domain/access/suspension.ts';
import { hintForSymbol } from '../../schemas/pill.ts';
import type { ProblemCode } from './problem-catalogue.ts';

/** Members of an occurrence, besides the members of every problem. */
export const EXAMPLE_MEMBERS: Readonly<Partial<Record<ProblemCode, object>>> = {
  parameter_invalid: {
    errors: [{ parameter: 'symbol', code: 'symbol_malformed', detail: hintForSymbol('7203.t') }],
  },
  body_invalid: {
    errors: [{ pointer: '#/email', code: 'missing_field', detail: '`email` is required.' }],
  },
  tier_too_low: {
    detail: 'Pro API is required for this call; the account has Basic API.',
    tier: 'basic',
    needs: 'pro',
  },
  account_suspended: { ...suspensionOf({ status: 'active' }) },
  account_closed: { erased_at: '2026-12-20T01:02:03.000000Z', support: 'support@example.com' },
  account_outcome_unknown: {
    detail: 'If GET /api/keys lists a new key, revoke it and create another.',
  },
  dedicated_limit: { limit: 10 },
  webhook_limit: { limit: 5 },
  destination_limit: { limit: 10 },
  webhook_secret_limit: {
    limit: 3,
    in_force: [
      { created_at: '2026-11-20T03:02:03.000000Z', expires_at: null },
      { created_at: '2026-11-20T02:02:03.000000Z', expires_at: '2026-11-21T03:02:03.000000Z' },
      { created_at: '2026-11-20T01:02:03.000000Z', expires_at: '2026-11-21T02:02:03.000000Z' },
    ],
  },
  webhook_backlog_full: { limit: 10_000 },
  symbol_refused: { desk: 'tokyo', symbols: ['0700.HK'] },
  permission_missing: {
    role: 'developer',
    permission: 'members:change',
    roles: ['owner', 'admin'],
  },
  membership_inactive: { role: 'developer' },
  member_limit: { limit: 100 },
  desk_limit: { limit: 50 },
  scope_missing: { needs: 'read', has: ['stream'] },
  no_pill: { detail: 'No pill of 9999.T was ever received.', position: 'k7f3:0-95,3-140' },
  grant_invalid: { detail: 'The grant expired at 2026-11-21T01:02:03Z.' },
  query_too_large: {
    try: { from: '2026-11-20T12:00:00.000000Z', to: '2026-11-21T00:00:00.000000Z' },
  },
  history_behind: { position: 'k7f3:0-95,3-128' },
  rate_limited: {
    'violated-policies': ['burst'],
    scope: 'account',
    limit: 20,
    window_s: 2,
  },
  daily_quota_exceeded: {
    'violated-policies': ['daily'],
    scope: 'account',
    limit: 1000,
    used: 1000,
    resets_at: '2026-11-21T00:00:00.000000Z',
    retry_after_s: 3600,
  },
};
