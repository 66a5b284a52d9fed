import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { formatTimestamp } from '../../schemas/timestamp.ts';
import { publicKeyPem } from '../access/scheme-rows.ts';
import { AUDIT_PAGE_MAX, readAudit } from './audit.ts';

/** Rows per statement; no statement waits for the reader of the export. */
const PAGE_ROWS = 500;

type Row = Readonly<Record<string, unknown>>;
/** A page of a table in the order of its key, with the last key of the page before. */
type Read = (accountId: string, after: string) => RawBuilder<Row>;

/** The tables of an account, by the kind of their lines; `at` is the key. Never a hash or secret. */
const TABLES: Readonly<Record<string, Read>> = {
  account: (id, after) => sql`
    SELECT id AS at, id, name, status, suspended_reason, created_at FROM accounts
    WHERE id = ${id} AND id > ${after}`,
  user: (id, after) => sql`
    SELECT id AS at, id, email, role, email_verified_at, created_at, last_sign_in_at FROM users
    WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  invitation: (id, after) => sql`
    SELECT id AS at, id, email, role, mails, created_at, created_by, expires_at FROM invitations
    WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  subscription: (id, after) => sql`
    SELECT account_id AS at, tier, status, period_end, cancel_at_period_end, next_tier,
      past_due_since, provider
    FROM subscriptions WHERE account_id = ${id} AND account_id > ${after}`,
  checkout: (id, after) => sql`
    SELECT id AS at, id, tier, status, amount_cents, provider, created_at FROM checkouts
    WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  key: (id, after) => sql`
    SELECT id AS at, id, name, hint, desk_id, scopes, allow_cidrs, created_at, created_by, expires_at,
      revoked_at, last_used_at, last_used_address
    FROM api_keys WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  desk: (id, after) => sql`
    SELECT id AS at, id, name, calls_per_day, rate_per_s, rate_burst, connections_max, symbols,
      allow_cidrs, expires_at, created_at, created_by, removed_at
    FROM desks WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  authentication_scheme: (id, after) => sql`
    SELECT id AS at, id, key_id, name, kind AS scheme_kind, algorithms, public_key, issuer, jwks_url, scope_claim, scope_map,
      scopes, allow_cidrs, created_at, created_by, expires_at, tried_at, is_on, removed_at,
      last_used_at, last_used_address
    FROM authentication_schemes WHERE account_id = ${id} AND id > ${after}
    ORDER BY id LIMIT ${PAGE_ROWS}`,
  export: (id, after) => sql`
    SELECT id AS at, id, request->'asked' AS request, state, created_at, created_by, started_at,
      finished_at, position, rows_done::double precision AS rows, bytes::double precision AS bytes,
      sha256, receipt, problem
    FROM exports WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  webhook_endpoint: (id, after) => sql`
    SELECT id AS at, id, url, description, event_types, symbols, min_confidence, min_spread,
      max_spread, states, backfill, rate_per_s, max_age_s, status, created_at
    FROM webhook_endpoints WHERE account_id = ${id} AND id > ${after}
    ORDER BY id LIMIT ${PAGE_ROWS}`,
  destination: (id, after) => sql`
    SELECT id AS at, id, name, type, settings, filter, paused_by, created_at, created_by, updated_at,
      failing_since, last_delivered_at
    FROM destinations WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  ticket: (id, after) => sql`
    SELECT id AS at, id, subject, message, state, created_at FROM support_tickets
    WHERE account_id = ${id} AND id > ${after} ORDER BY id LIMIT ${PAGE_ROWS}`,
  ticket_message: (id, after) => sql`
    SELECT m.id AS at, m.ticket_id AS ticket, m.author, m.message, m.created_at
    FROM support_messages m JOIN support_tickets t ON t.id = m.ticket_id
    WHERE t.account_id = ${id} AND m.id > ${after} ORDER BY m.id LIMIT ${PAGE_ROWS}`,
  usage_day: (id, after) => sql`
    SELECT to_char(day, 'YYYY-MM-DD') AS at, to_char(day, 'YYYY-MM-DD') AS day,
      used::double precision AS calls
    FROM usage_days WHERE account_id = ${id} AND to_char(day, 'YYYY-MM-DD') > ${after}
    ORDER BY usage_days.day LIMIT ${PAGE_ROWS}`,
};

/**
 * Everything that is stored about an account and its customers' doing, line by line as NDJSON: each
 * line has its `kind`; the last one is `end` with the number of lines before it, so that a cut
 * export is noticed. @throws any database error
 */
export async function* exportAccount(db: Database, accountId: string): AsyncGenerator<string> {
  let lines = 0;
  const lineOf = (kind: string, row: Row) => {
    lines += 1;
    return `${JSON.stringify({ kind, ...row }, formatValues)}\n`;
  };
  for (const [kind, read] of Object.entries(TABLES)) {
    for (let after = ''; ; ) {
      const { rows } = await read(accountId, after).execute(db);
      for (const { at: _, ...row } of rows) yield lineOf(kind, row);
      if (rows.length < PAGE_ROWS) break;
      after = String(rows.at(-1)!.at);
    }
  }
  for (let before: string | undefined; ; ) {
    const page = await readAudit(db, accountId, { limit: AUDIT_PAGE_MAX, before });
    for (const { id, at, actor, action, target, address, detail } of page) {
      yield lineOf('audit', { id, at, actor, action, target, address, detail });
    }
    if (page.length < AUDIT_PAGE_MAX) break;
    before = page.at(-1)!.id;
  }
  yield `${JSON.stringify({ kind: 'end', lines })}\n`;
}

/**
 * Times and public keys, the only bytes, as all answers show them. `toJSON` has made something else
 * of both before this is called.
 */
function formatValues(this: Row, name: string, value: unknown): unknown {
  const own = this[name];
  if (Buffer.isBuffer(own)) return publicKeyPem(own);
  return own instanceof Date ? formatTimestamp(own.getTime() * 1_000) : value;
}
