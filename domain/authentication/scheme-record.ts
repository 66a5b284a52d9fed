import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { publicKeyPem } from '../access/scheme-rows.ts';
import type { Scope } from '../access/scopes.ts';

/** A scheme as its owner sees it, without its secret. */
export type SchemeRecord = ReturnType<typeof recordOf>;

/** The result of the last request of a trial. */
export interface TrialReport {
  readonly at: string;
  readonly ok: boolean;
  /** The part that failed; null = none. */
  readonly check: string | null;
  readonly detail: string | null;
}

const IS_EXPIRED = sql<boolean>`coalesce(expires_at <= now(), false)`;
const IS_TRIAL_OPEN = sql<boolean>`coalesce(trial_until > now(), false)`;

export function selectSchemes(db: Database | Transaction<Tables>, accountId: string) {
  return db
    .selectFrom('authentication_schemes')
    .selectAll()
    .select(IS_EXPIRED.as('is_expired'))
    .select(IS_TRIAL_OPEN.as('is_trial_open'))
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null);
}

/** Returns undefined also for another account's scheme, and for a removed one. */
export async function readScheme(
  db: Database | Transaction<Tables>,
  accountId: string,
  id: string,
): Promise<SchemeRecord | undefined> {
  const row = await selectSchemes(db, accountId).where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : recordOf(row);
}

export function recordOf(
  row: Awaited<ReturnType<ReturnType<typeof selectSchemes>['executeTakeFirstOrThrow']>>,
) {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    kind: row.kind,
    /** Key that the scheme stands for. */
    keyId: row.key_id ?? undefined,
    algorithms: row.algorithms,
    publicKey: row.public_key === null ? undefined : publicKeyPem(row.public_key),
    issuer: row.issuer ?? undefined,
    jwksUrl: row.jwks_url ?? undefined,
    scopeClaim: row.scope_claim ?? undefined,
    scopeMap: row.scope_map as Readonly<Record<string, readonly Scope[]>>,
    scopes: row.scopes as Scope[],
    allowCidrs: row.allow_cidrs,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    state: stateOf(row),
    isOn: row.is_on,
    trialUntil: row.is_trial_open ? (row.trial_until ?? undefined) : undefined,
    lastTrial: (row.trial_report ?? undefined) as TrialReport | undefined,
    triedAt: row.tried_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    lastUsedAddress: row.last_used_address ?? undefined,
  };
}

function stateOf(row: { is_expired: boolean; is_on: boolean; tried_at: Date | null }) {
  if (row.is_expired) return 'expired';
  if (row.is_on) return 'on';
  return row.tried_at === null ? 'untried' : 'off';
}
