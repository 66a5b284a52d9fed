import { randomBytes } from 'node:crypto';
import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import { newId } from '../access/id.ts';
import type { Scope } from '../access/scopes.ts';
import type { Seal } from '../access/sealing.ts';
import { raiseSecurityEvent } from '../accounts/account-alerts.ts';
import { lockAccount } from '../accounts/account-row.ts';
import { type AccountRequest, writeAudit } from '../accounts/audit.ts';
import { readKey } from '../accounts/key-row.ts';
import { canonicalNetworks } from '../accounts/networks.ts';
import {
  readScheme,
  recordOf,
  type SchemeRecord,
  selectSchemes,
  type TrialReport,
} from './scheme-record.ts';
import { readPublicKey, type SignatureAlgorithm } from './signature.ts';

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

/** What a new scheme verifies. */
export type NewProof =
  | {
      readonly kind: 'signature';
      readonly algorithm: SignatureAlgorithm;
      /** PEM; absent for hmac-sha256. */
      readonly publicKey?: string | undefined;
    }
  | {
      readonly kind: 'token';
      readonly algorithms: readonly string[];
      readonly issuer: string;
      readonly jwksUrl: string;
      readonly scopeClaim?: string | undefined;
      readonly scopeMap?: Readonly<Record<string, readonly Scope[]>> | undefined;
    };

export interface SchemeSettings {
  readonly name?: string | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  readonly allowCidrs?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
}

export interface SchemeInvalid {
  readonly kind: 'invalid';
  readonly field: string;
  /** One sentence for the caller, which never repeats the input. */
  readonly reason: string;
}

type SchemeRequest = AccountRequest & { readonly schemeId: string };
type NewScheme = AccountRequest &
  Required<Pick<SchemeSettings, 'name' | 'scopes'>> &
  SchemeSettings & { readonly proof: NewProof; readonly keyId?: string | undefined };

/** A change that the state of the scheme does not allow. */
interface Conflict {
  readonly kind: 'conflict';
  readonly reason: string;
}

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
      faultOf(wanted) ?? inTurn(db, wanted.accountId, (tx) => createScheme(tx, seal, wanted)),

    /** Oldest first. */
    async list(accountId: string): Promise<readonly SchemeRecord[]> {
      const rows = await selectSchemes(db, accountId).orderBy('created_at').orderBy('id').execute();
      return rows.map(recordOf);
    },

    get: (accountId: string, id: string) => readScheme(db, accountId, id),

    update: async (change: SchemeRequest & SchemeSettings) =>
      faultOf(change) ?? inTurn(db, change.accountId, (tx) => updateScheme(tx, change)),

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
      ...columnsOf(proof),
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
  await writeAudit(tx, { ...auditOf(wanted, 'scheme.created', id), detail: settingsOf(record) });
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

const isHmac = (proof: NewProof) => proof.kind === 'signature' && proof.algorithm === 'hmac-sha256';

function columnsOf(proof: NewProof) {
  if (proof.kind === 'signature') {
    const { kind, algorithm, publicKey } = proof;
    const key = publicKey === undefined ? null : readPublicKey(publicKey, algorithm)!;
    return { kind, algorithms: [algorithm], public_key: key };
  }
  const { kind, algorithms, issuer, jwksUrl, scopeClaim = null, scopeMap = {} } = proof;
  return {
    kind,
    algorithms: [...algorithms],
    issuer,
    jwks_url: jwksUrl,
    scope_claim: scopeClaim,
    scope_map: JSON.stringify(scopeMap),
  };
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
  await writeAudit(tx, { ...auditOf(change, 'scheme.updated', schemeId), detail });
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
  await writeAudit(tx, auditOf(request, 'scheme.trial_opened', schemeId));
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
  await writeAudit(tx, auditOf(request, `scheme.switched_${to}`, schemeId));
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
  await writeAudit(tx, auditOf(request, 'scheme.removed', schemeId));
  return { kind: 'ok' };
}

/** Whether keys are refused, and no other scheme of the account itself is on. */
async function isLastWayIn(tx: Transaction<Tables>, accountId: string, schemeId: string) {
  const account = await tx
    .selectFrom('accounts')
    .select('keys_refused')
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow();
  return account.keys_refused && (await schemesOn(tx, accountId, schemeId)) === 0;
}

/** Schemes of the account itself that are accepted now. @param except is not counted */
async function schemesOn(tx: Transaction<Tables>, accountId: string, except = ''): Promise<number> {
  const rows = await selectSchemes(tx, accountId)
    .where('is_on', '=', true)
    .where('key_id', 'is', null)
    .where('id', '<>', except)
    .execute();
  return rows.filter((row) => !row.is_expired).length;
}

async function refuseKeys(
  tx: Transaction<Tables>,
  request: AccountRequest & { readonly refused: boolean },
): Promise<{ readonly kind: 'ok' } | Conflict> {
  const { accountId, refused } = request;
  await lockAccount(tx, accountId);
  if (refused && (await schemesOn(tx, accountId)) === 0) {
    return conflict('No scheme of the account is on: programs would have no way in.');
  }
  await tx
    .updateTable('accounts')
    .set({ keys_refused: refused })
    .where('id', '=', accountId)
    .execute();
  await writeAudit(tx, auditOf(request, refused ? 'keys.refused' : 'keys.accepted'));
  return { kind: 'ok' };
}

async function refuseSecret(
  tx: Transaction<Tables>,
  request: AccountRequest & { readonly keyId: string; readonly refused: boolean },
): Promise<{ readonly kind: 'ok' } | Conflict | undefined> {
  const { accountId, keyId, refused } = request;
  await lockAccount(tx, accountId);
  const key = await readKey(tx, accountId, keyId);
  if (key === undefined || !key.live) return undefined;
  const ofKey = await selectSchemes(tx, accountId)
    .where('key_id', '=', keyId)
    .where('is_on', '=', true)
    .execute();
  if (refused && ofKey.every((row) => row.is_expired)) {
    return conflict('No scheme that stands for this key is on.');
  }
  await tx
    .updateTable('api_keys')
    .set({ secret_refused: refused })
    .where('id', '=', keyId)
    .execute();
  await writeAudit(tx, auditOf(request, refused ? 'key.refused' : 'key.accepted', keyId));
  return { kind: 'ok' };
}

function faultOf(
  wanted: SchemeSettings & { readonly proof?: NewProof },
): SchemeInvalid | undefined {
  const { expiresAt, allowCidrs = [], proof } = wanted;
  // The negation also refuses an invalid date.
  if (expiresAt !== undefined && !(expiresAt.getTime() > Date.now())) {
    return invalid('expires_at', 'must be a time in the future.');
  }
  const networks = canonicalNetworks(allowCidrs);
  if (!networks.ok) return invalid('allow_cidrs', networks.reason);
  if (proof?.kind !== 'signature') return undefined;
  const { algorithm, publicKey } = proof;
  if (algorithm === 'hmac-sha256') {
    const reason = 'must be left out for hmac-sha256: the answer has the secret.';
    return publicKey === undefined ? undefined : invalid('public_key', reason);
  }
  if (publicKey !== undefined && readPublicKey(publicKey, algorithm) !== undefined)
    return undefined;
  const kind = algorithm === 'ed25519' ? 'an Ed25519' : 'a P-256';
  return invalid(
    'public_key',
    `must be ${kind} public key in PEM, which begins "BEGIN PUBLIC KEY".`,
  );
}

function networksOf(texts: readonly string[]): string[] {
  const read = canonicalNetworks(texts);
  if (!read.ok) throw new Error(`networks were not checked: ${read.reason}`);
  return [...read.networks];
}

function invalid(field: string, reason: string): SchemeInvalid {
  return { kind: 'invalid', field, reason };
}

function conflict(reason: string): Conflict {
  return { kind: 'conflict', reason };
}

function auditOf({ accountId, actor, address }: AccountRequest, action: string, target?: string) {
  return { accountId, actor, address, action, target };
}

function settingsOf(record: SchemeRecord) {
  const { name, kind, algorithms, issuer, jwksUrl, keyId, scopes, allowCidrs, expiresAt } = record;
  const bounds = { scopes, allow_cidrs: allowCidrs, expires_at: expiresAt };
  return { name, kind, algorithms, issuer, jwks_url: jwksUrl, key: keyId, ...bounds };
}
