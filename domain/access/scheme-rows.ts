import type { StatementPool } from '../../lib/postgres/statement-pool.ts';
import {
  ACCOUNT_COLUMNS,
  type AccountAccessRow,
  accountAccessOf,
  DESK_COLUMNS,
  type DeskRow,
  deskAccessOf,
  earliestMs,
  JOIN_DESK,
} from './access-rows.ts';
import type { KeyAccess } from './account-access.ts';
import { type AllowList, isAllowed, parseAllowList } from './allow-list.ts';
import { hasScope, type Scope } from './scopes.ts';

/** The ids of schemes: `keyid` of a signature, audience of a token. */
const ID = /^aut_[a-km-np-z2-9]{12}$/;

export function isSchemeId(text: string): boolean {
  return ID.test(text);
}

/** What a scheme verifies. It never changes: a new scheme replaces it. */
export type SchemeProof =
  | {
      readonly kind: 'signature';
      readonly algorithm: string;
      /** SubjectPublicKeyInfo in DER; undefined = `sealed` holds a secret. */
      readonly publicKey: Buffer | undefined;
      readonly sealed: Buffer | undefined;
    }
  | {
      readonly kind: 'token';
      readonly algorithms: readonly string[];
      readonly issuer: string;
      readonly jwksUrl: string;
      readonly scopeClaim: string | undefined;
      readonly scopeMap: Readonly<Record<string, readonly Scope[]>>;
    };

/** An authentication scheme with its account, whether or not the scheme is accepted now. */
export interface FoundScheme {
  readonly access: KeyAccess;
  readonly proof: SchemeProof;
  readonly isOn: boolean;
  /** A trial of the scheme is open until then, Unix ms. */
  readonly trialUntilMs: number;
  /** Removed, or the key that the scheme stands for is revoked. */
  readonly isRevoked: boolean;
  readonly allowLists: readonly AllowList[];
}

interface SchemeRow extends AccountAccessRow, DeskRow {
  readonly id: string;
  readonly name: string;
  readonly kind: 'signature' | 'token';
  readonly algorithms: readonly string[];
  readonly public_key: Buffer | null;
  readonly sealed: Buffer | null;
  readonly issuer: string | null;
  readonly jwks_url: string | null;
  readonly scope_claim: string | null;
  readonly scope_map: Readonly<Record<string, readonly Scope[]>>;
  readonly scopes: readonly Scope[];
  readonly allow_cidrs: readonly string[];
  readonly expires_at: Date | null;
  readonly trial_until: Date | null;
  readonly is_on: boolean;
  readonly removed_at: Date | null;
  readonly key_id: string | null;
  readonly key_scopes: readonly Scope[] | null;
  readonly key_cidrs: readonly string[] | null;
  readonly key_expires_at: Date | null;
  readonly key_revoked_at: Date | null;
}

const READ = `
  SELECT x.id, x.name, x.kind, x.algorithms, x.public_key, x.sealed, x.issuer, x.jwks_url,
    x.scope_claim, x.scope_map, x.scopes, x.allow_cidrs, x.expires_at, x.trial_until, x.is_on,
    x.removed_at, x.key_id, k.scopes AS key_scopes, k.allow_cidrs AS key_cidrs,
    k.expires_at AS key_expires_at, k.revoked_at AS key_revoked_at, ${DESK_COLUMNS},
    ${ACCOUNT_COLUMNS}
  FROM authentication_schemes x
  JOIN accounts a ON a.id = x.account_id
  LEFT JOIN api_keys k ON k.id = x.key_id
  ${JOIN_DESK}
  LEFT JOIN subscriptions s ON s.account_id = a.id
  WHERE x.id = $1`;

/** Reads a scheme. @throws any database error */
export async function findScheme(
  pool: Pick<StatementPool, 'query'>,
  id: string,
): Promise<FoundScheme | undefined> {
  const [row] = await pool.query<SchemeRow>(READ, [id]);
  if (row === undefined) return undefined;
  const { key_scopes: ofKey } = row;
  return {
    access: {
      id: row.id,
      hint: row.name,
      scopes: row.scopes.filter((scope) => ofKey === null || hasScope(ofKey, scope)),
      expiresAtMs: earliestMs(row.expires_at, row.key_expires_at, row.desk_expires_at),
      account: accountAccessOf(row),
      desk: deskAccessOf(row),
    },
    proof: proofOf(row),
    isOn: row.is_on,
    trialUntilMs: row.trial_until?.getTime() ?? 0,
    isRevoked: [row.removed_at, row.key_revoked_at, row.desk_removed_at].some((at) => at !== null),
    allowLists: [row.allow_cidrs, row.key_cidrs ?? [], row.desk_cidrs ?? []].map(parseAllowList),
  };
}

function proofOf(row: SchemeRow): SchemeProof {
  const { kind, algorithms } = row;
  if (kind === 'signature') {
    const [publicKey, sealed] = [row.public_key ?? undefined, row.sealed ?? undefined];
    return { kind, algorithm: algorithms[0]!, publicKey, sealed };
  }
  return {
    kind,
    algorithms,
    issuer: row.issuer!,
    jwksUrl: row.jwks_url!,
    scopeClaim: row.scope_claim ?? undefined,
    scopeMap: row.scope_map,
  };
}

/** Why a scheme is not accepted now, whatever was signed; undefined if it is. */
export function schemeFault(
  { access, isOn, isRevoked }: FoundScheme,
  nowMs: number,
): 'off' | 'revoked' | 'expired' | undefined {
  if (isRevoked) return 'revoked';
  if (access.expiresAtMs !== undefined && nowMs >= access.expiresAtMs) return 'expired';
  return isOn ? undefined : 'off';
}

/** Whether a scheme, and the key that it stands for, may be used from an address. */
export function isAddressAllowed({ allowLists }: FoundScheme, address: string): boolean {
  return allowLists.every((list) => isAllowed(list, address));
}

/** A stored public key (SubjectPublicKeyInfo, DER) as customers see it: PEM (RFC 7468). */
export function publicKeyPem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN PUBLIC KEY-----\n${lines.join('\n')}\n-----END PUBLIC KEY-----\n`;
}
