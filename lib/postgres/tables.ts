import type { ColumnType, GeneratedAlways, JSONColumnType } from 'kysely';

/** Filled in by the database unless given. */
type Defaulted<T> = ColumnType<T, T | undefined, T>;
/** bigint: pg gives it as text. */
type Big = ColumnType<string, number | string, number | string>;
/** `date`, as `YYYY-MM-DD` when it is selected as text. */
type Day = ColumnType<Date, string, string>;
type Json = JSONColumnType<Readonly<Record<string, unknown>>>;

/** As the CHECK of the columns has it; what tiers mean is said in lib/access, which reads them. */
type Tier = 'basic' | 'pro' | 'institutional';

/** All tables, as deploy/sql/postgres makes them; the comments are there. */
export interface Tables {
  accounts: {
    id: string;
    name: string;
    status: Defaulted<'active' | 'suspended' | 'closed'>;
    suspended_reason: string | null;
    rate_per_s: number | null;
    rate_burst: number | null;
    calls_per_day: number | null;
    created_at: Defaulted<Date>;
    closed_at: Date | null;
  };
  users: {
    id: string;
    account_id: string;
    email: string;
    password_hash: string;
    email_verified_at: Date | null;
    created_at: Defaulted<Date>;
    last_sign_in_at: Date | null;
  };
  sessions: {
    hash: Buffer;
    user_id: string;
    csrf_token: string;
    address: string;
    created_at: Defaulted<Date>;
    last_seen_at: Defaulted<Date>;
    expires_at: Date;
  };
  mail_tokens: {
    hash: Buffer;
    user_id: string;
    purpose: 'verify_email' | 'reset_password';
    created_at: Defaulted<Date>;
    expires_at: Date;
  };
  audit_log: {
    id: GeneratedAlways<string>;
    at: Defaulted<Date>;
    account_id: string | null;
    actor: string;
    action: string;
    target: string | null;
    address: string | null;
    detail: Json;
  };
  notices: {
    id: string;
    severity: 'info' | 'warning' | 'outage';
    message: string;
    published_at: Defaulted<Date>;
    until: Date | null;
  };
  support_tickets: {
    id: string;
    account_id: string;
    tier: string;
    subject: string;
    message: string;
    created_at: Defaulted<Date>;
    mailed_at: Date | null;
    attempts: Defaulted<number>;
    next_at: Defaulted<Date>;
    parked_at: Date | null;
  };
  subscriptions: {
    account_id: string;
    tier: Tier;
    status: 'active' | 'past_due' | 'ended';
    past_due_since: Date | null;
    period_end: Date;
    cancel_at_period_end: Defaulted<boolean>;
    provider: string;
    provider_reference: string;
    updated_at: Defaulted<Date>;
  };
  checkouts: {
    id: string;
    account_id: string;
    tier: Tier;
    provider: string;
    status: Defaulted<'open' | 'paid' | 'failed' | 'void'>;
    created_at: Defaulted<Date>;
    expires_at: Date;
  };
  billing_events: {
    provider: string;
    event_id: string;
    type: string;
    account_id: string | null;
    received_at: Defaulted<Date>;
    reference: string | null;
    at: Defaulted<Date>;
    tier: Tier | null;
    period_end: Date | null;
  };
  account_events: {
    id: GeneratedAlways<string>;
    account_id: string;
    type: string;
    dedupe: string;
    data: Json;
    created_at: Defaulted<Date>;
    mailed_at: Date | null;
    attempts: Defaulted<number>;
    next_at: Defaulted<Date>;
    parked_at: Date | null;
    /** Ids of users. */
    told: Defaulted<string[]>;
    posted_at: Date | null;
  };
  api_keys: {
    id: string;
    account_id: string;
    hash: Buffer;
    hint: string;
    name: string;
    scopes: string[];
    allow_cidrs: Defaulted<string[]>;
    created_at: Defaulted<Date>;
    created_by: string;
    expires_at: Date | null;
    revoked_at: Date | null;
    replaced_by: string | null;
    last_used_at: Date | null;
    last_used_address: string | null;
  };
  stream_tickets: {
    hash: Buffer;
    account_id: string;
    key_id: string | null;
    session_hash: Buffer | null;
    expires_at: Date;
  };
  stream_processes: {
    process: string;
    seen_at: Date;
  };
  stream_sessions: {
    session: string;
    process: string;
    account_id: string;
    session_hash: Buffer | null;
    hint: string;
    address: string;
    encoding: 'json' | 'avro';
    opened_at: Date;
    queue_ms: number;
    queue_bytes: Big;
    end_asked_at: Date | null;
  };
  access_changes: {
    id: GeneratedAlways<string>;
    xid: GeneratedAlways<string>;
    account_id: string;
    at: Defaulted<Date>;
  };
  usage_days: {
    account_id: string;
    day: Day;
    used: ColumnType<string, number | string | undefined, number | string>;
  };
  usage_calls: {
    account_id: string;
    day: Day;
    key_id: string;
    endpoint: string;
    calls: Big;
  };
  dedicated_streams: {
    name: string;
    account_id: string;
    label: string;
    port: number;
    created_at: Defaulted<Date>;
    created_by: string;
    replaced_by: string | null;
    expires_at: Date | null;
    removed_at: Date | null;
  };
  dedicated_stream_states: {
    name: string;
    state: 'starting' | 'ready' | 'failing' | 'stopped';
    reason: string | null;
    pid: number | null;
    since: Date;
    restarts: number;
    connections: number;
    queue_bytes: Big;
    queue_ms: number;
    lag_records: ColumnType<string | null, number | null, number | null>;
    reported_at: Defaulted<Date>;
  };
  webhook_endpoints: {
    id: string;
    account_id: string;
    url: string;
    description: Defaulted<string>;
    event_types: string[];
    symbols: Defaulted<string[]>;
    min_confidence: number | null;
    min_spread: number | null;
    max_spread: number | null;
    states: Defaulted<string[]>;
    backfill: Defaulted<boolean>;
    headers: Buffer | null;
    rate_per_s: number;
    max_age_s: number;
    status: Defaulted<'pending' | 'enabled' | 'disabled'>;
    disabled_reason: string | null;
    challenge: string;
    failing_since: Date | null;
    resting_until: Date | null;
    backlog_full_since: Date | null;
    created_at: Defaulted<Date>;
    updated_at: Defaulted<Date>;
  };
  webhook_secrets: {
    id: GeneratedAlways<string>;
    endpoint_id: string;
    account_id: string;
    sealed: Buffer;
    created_at: Defaulted<Date>;
    expires_at: Date | null;
  };
  webhook_deliveries: {
    id: GeneratedAlways<string>;
    endpoint_id: string;
    message_id: string;
    event_type: string;
    body: string;
    bytes: GeneratedAlways<number>;
    pills: Defaulted<number>;
    occurred_at: Date;
    status: Defaulted<'waiting' | 'failed' | 'expired'>;
    attempts: Defaulted<number>;
    next_at: Date;
    last_status: number | null;
    last_reason: string | null;
    created_at: Defaulted<Date>;
    settled_at: Date | null;
  };
  webhook_positions: {
    epoch: string;
    partition: number;
    owner: string;
    next_offset: Big;
    tried_below: Big;
    snapshot_offset: ColumnType<string | null, number | null, number | null>;
    snapshot: Buffer | null;
  };
  webhook_joined: {
    epoch: string;
    partition: number;
    endpoint_id: string;
    first_offset: Big;
    last_offset: Big;
  };
  webhook_workers: {
    worker: string;
    seen_at: Defaulted<Date>;
  };
}
