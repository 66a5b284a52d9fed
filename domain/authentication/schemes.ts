import { randomBytes } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import type { Seal } from '../access/sealing.ts';
import { raiseSecurityEvent } from '../accounts/account-alerts.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type AccountRequest, auditEntry, writeAudit } from '../accounts/audit.ts';
import { readKey } from '../accounts/key-row.ts';
import { networksOf } from '../accounts/networks.ts';
import { type Conflict, conflict, isLastWayIn, refuseKeys, refuseSecret } from './key-refusal.ts';
import {
  readScheme,
  recordOf,
  type SchemeRecord,
  selectSchemes,
  type TrialReport,
} from './scheme-record.ts';
import {
  invalid,
  isHmac,
  type NewProof,
  proofColumns,
  type SchemeSettings,
  settingsFault,
} from './scheme-settings.ts';

export const SCHEME_LIMITS = {
  /** Schemes of an account that are not removed. */
  perAccountMax: 50,
  /** Schemes made within an hour, also if removed since: each one is mailed. */
  madePerHourMax: 60,
  nameCharsMax: 100,
  pemCharsMax: 2_000,
  issuerCharsMax: 500,
  claimCharsMax: 100,
  mapEntriesMax: 50,
  /** How long a trial is open, and requests that it reports. */
  trialS: 600,
  trialAttemptsMax: 100,
  detailCharsMax: 4_000,
  secretBytes: 32,
} as const;

type SchemeRequest = AccountRequest & { readonly schemeId: string };
type NewScheme = AccountRequest &
  Required<Pick<SchemeSettings, 'name' | 'scopes'>> &
  SchemeSettings & { readonly proof: NewProof; readonly keyId?: string | undefined };

const LAST_WAY_IN =
  'Keys are refused, and this is the last scheme that is on. Accept keys again first, or switch ' +
  'another scheme on.';

export type Schemes = ReturnType<typeof createSchemes>;

/**
 * Authentication schemes of accounts. The id of another account's scheme counts as unknown:
 * undefined. What a scheme verifies cannot be changed, so a trial stays true; a new scheme replaces
 * it.
 */
export function createSchemes({ db, seal }: { readonly db: Database; readonly seal: Seal }) {
  return {
    create: async (wanted: NewScheme) =>
      settingsFault(wanted) ?? inTurn(db, wanted.accountId, (tx) => createScheme(tx, seal, wanted)),

    /** Oldest first. */
    async list(accountId: string): Promise<readonly SchemeRecord[]> {
      const rows = await selectSchemes(db, accountId).orderBy('created_at').orderBy('id').execute();
      return rows.map(recordOf);
    },

    get: (accountId: string, id: string) => readScheme(db, accountId, id),

    update: async (change: SchemeRequest & SchemeSettings) =>
      settingsFault(change) ?? inTurn(db, change.accountId, (tx) => updateScheme(tx, change)),

    /** Opens a trial: until its end, requests to the check route are reported. */
    openTrial: (request: SchemeRequest) =>
      inTurn(db, request.accountId, (tx) => openTrial(tx, request)),

    /** Records the result of a request of an open trial; further ones than the bound are dropped. */
    async recordTrial(id: string, report: TrialReport): Promise<void> {
      await sql`
        UPDATE authentication_schemes
        SET trial_report = ${JSON.stringify(report)}::jsonb, trial_attempts = trial_attempts + 1,
          tried_at = CASE WHEN ${report.ok} THEN now() ELSE tried_at END
        WHERE id = ${id} AND removed_at IS NULL AND trial_until > now()
          AND trial_attempts < ${SCHEME_LIMITS.trialAttemptsMax}`.execute(db);
    },

    switch: (request: SchemeRequest & { readonly to: 'on' | 'off' }) =>
      inTurn(db, request.accountId, (tx) => switchScheme(tx, request)),

    /** Removes a scheme for good. */
    remove: (request: SchemeRequest) =>
      inTurn(db, request.accountId, (tx) => removeScheme(tx, request)),

    /** Whether API keys are accepted. */
    async areKeysRefused(accountId: string): Promise<boolean> {
      const row = await db
        .selectFrom('accounts')
        .select('keys_refused')
        .where('id', '=', accountId)
        .executeTakeFirst();
      return row?.keys_refused === true;
    },

    /** Accepts or refuses the keys of the account; keys stay as they are. */
    refuseKeys: (request: AccountRequest & { readonly refused: boolean }) =>
      inTurn(db, request.accountId, (tx) => refuseKeys(tx, request)),

    /** Accepts or refuses one key itself; its schemes are accepted either way. */
    refuseSecret: (
      request: AccountRequest & { readonly keyId: string; readonly refused: boolean },
    ) => inTurn(db, request.accountId, (tx) => refuseSecret(tx, request)),
  };
}

async function createScheme(tx: Transaction<Tables>, seal: Seal, wanted: NewScheme) {
  const { accountId, proof, keyId } = wanted;
  await lockAccount(tx, accountId);
  const { made, live } = await countSchemes(tx, accountId);
  if (live >= SCHEME_LIMITS.perAccountMax) return { kind: 'limit' } as const;
  if (made >= SCHEME_LIMITS.madePerHourMax) return { kind: 'too_many_made' } as const;
  if (keyId !== undefined && (await readKey(tx, accountId, keyId))?.live !== true) {
    return invalid('key_id', 'must be the id of a live key of the account.');
  }
  const id = newId('aut');
  const secret = isHmac(proof) ? randomBytes(SCHEME_LIMITS.secretBytes) : undefined;
  await tx
    .insertInto('authentication_schemes')
    .values({
      id,
      account_id: accountId,
      key_id: keyId ?? null,
      name: wanted.name!,
      ...proofColumns(proof),
      sealed: secret === undefined ? null : seal.seal(secret, id),
      scopes: [...wanted.scopes!],
      allow_cidrs: networksOf(wanted.allowCidrs ?? []),
      expires_at: wanted.expiresAt ?? null,
      created_by: wanted.actor,
    })
    .execute();
  const record = (await readScheme(tx, accountId, id))!;
  await raiseSecurityEvent(tx, accountId, {
    type: 'scheme.created',
    occurrence: id,
    data: {
      scheme: id,
      name: record.name,
      by: wanted.actor,
      address: wanted.address ?? 'the operator',
    },
  });
  await writeAudit(tx, { ...auditEntry(wanted, 'scheme.created', id), detail: settingsOf(record) });
  return { kind: 'ok', record, secret: secret?.toString('base64') } as const;
}

async function countSchemes(tx: Transaction<Tables>, accountId: string) {
  const { made, live } = await tx
    .selectFrom('authentication_schemes')
    .select(sql<string>`count(*) FILTER (WHERE removed_at IS NULL)`.as('live'))
    .select(sql<string>`count(*) FILTER (WHERE created_at > now() - interval '1 hour')`.as('made'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return { made: Number(made), live: Number(live) };
}

async function updateScheme(tx: Transaction<Tables>, change: SchemeRequest & SchemeSettings) {
  const { accountId, schemeId } = change;
  await lockAccount(tx, accountId);
  const before = await readScheme(tx, accountId, schemeId);
  if (before === undefined) return undefined;
  await tx
    .updateTable('authentication_schemes')
    .set({
      name: change.name ?? before.name,
      scopes: [...(change.scopes ?? before.scopes)],
      allow_cidrs: networksOf(change.allowCidrs ?? before.allowCidrs),
      expires_at: change.expiresAt ?? before.expiresAt ?? null,
    })
    .where('id', '=', schemeId)
    .execute();
  const record = (await readScheme(tx, accountId, schemeId))!;
  const detail = { before: settingsOf(before), after: settingsOf(record) };
  await writeAudit(tx, { ...auditEntry(change, 'scheme.updated', schemeId), detail });
  return { kind: 'ok', record } as const;
}

async function openTrial(tx: Transaction<Tables>, request: SchemeRequest) {
  const { accountId, schemeId } = request;
  await lockAccount(tx, accountId);
  if ((await readScheme(tx, accountId, schemeId)) === undefined) return undefined;
  await tx
    .updateTable('authentication_schemes')
    .set({
      trial_until: sql<Date>`now() + make_interval(secs => ${SCHEME_LIMITS.trialS})`,
      trial_attempts: 0,
      trial_report: null,
    })
    .where('id', '=', schemeId)
    .execute();
  await writeAudit(tx, auditEntry(request, 'scheme.trial_opened', schemeId));
  return readScheme(tx, accountId, schemeId);
}

async function switchScheme(
  tx: Transaction<Tables>,
  request: SchemeRequest & { readonly to: 'on' | 'off' },
): Promise<{ readonly kind: 'ok'; readonly record: SchemeRecord } | Conflict | undefined> {
  const { accountId, schemeId, to } = request;
  await lockAccount(tx, accountId);
  const before = await readScheme(tx, accountId, schemeId);
  if (before === undefined) return undefined;
  if (to === 'on' && before.triedAt === undefined) {
    return conflict('Try the scheme first: open a trial, and send a request that it accepts.');
  }
  if (to === 'off' && before.isOn && (await isLastWayIn(tx, accountId, schemeId))) {
    return conflict(LAST_WAY_IN);
  }
  await tx
    .updateTable('authentication_schemes')
    .set({ is_on: to === 'on' })
    .where('id', '=', schemeId)
    .execute();
  await writeAudit(tx, auditEntry(request, `scheme.switched_${to}`, schemeId));
  return { kind: 'ok', record: (await readScheme(tx, accountId, schemeId))! };
}

async function removeScheme(
  tx: Transaction<Tables>,
  request: SchemeRequest,
): Promise<{ readonly kind: 'ok' } | Conflict | undefined> {
  const { accountId, schemeId } = request;
  await lockAccount(tx, accountId);
  const before = await readScheme(tx, accountId, schemeId);
  if (before === undefined) return undefined;
  if (before.isOn && (await isLastWayIn(tx, accountId, schemeId))) return conflict(LAST_WAY_IN);
  await tx
    .updateTable('authentication_schemes')
    .set({ is_on: false, removed_at: sql<Date>`now()`, sealed: null })
    .where('id', '=', schemeId)
    .execute();
  await writeAudit(tx, auditEntry(request, 'scheme.removed', schemeId));
  return { kind: 'ok' };
}

function settingsOf(record: SchemeRecord) {
  const { name, kind, algorithms, issuer, jwksUrl, keyId, scopes, allowCidrs, expiresAt } = record;
  const bounds = { scopes, allow_cidrs: allowCidrs, expires_at: expiresAt };
  return { name, kind, algorithms, issuer, jwks_url: jwksUrl, key: keyId, ...bounds };
}
