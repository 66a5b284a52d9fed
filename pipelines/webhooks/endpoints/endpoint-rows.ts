import type { Selectable } from 'kysely';
import {
  ACCOUNT_ACCESS,
  type AccountAccessRow,
  accountAccessOf,
} from '../../../domain/access/access-rows.ts';
import type { AccountAccess } from '../../../domain/access/account-access.ts';
import type { EndpointRow } from '../../../domain/webhooks/endpoints/endpoint-row.ts';
import type { StatementPool } from '../../../lib/postgres/statement-pool.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';

type SecretRow = Pick<
  Selectable<Tables['webhook_secrets']>,
  'endpoint_id' | 'sealed' | 'expires_at'
>;

/** An endpoint with its dependencies. */
export interface LoadedEndpoint {
  readonly row: EndpointRow;
  /** Newest first. */
  readonly secrets: readonly SecretRow[];
  readonly account: AccountAccess;
}

/**
 * Reads the endpoints of an account, or all, oldest first within each account.
 * @throws any database error
 */
export async function readEndpoints(
  pool: StatementPool,
  accountId: string | undefined,
): Promise<readonly LoadedEndpoint[]> {
  const [where, values] =
    accountId === undefined ? ['', []] : ['WHERE account_id = $1', [accountId]];
  const rows = await pool.query<EndpointRow>(
    `SELECT * FROM webhook_endpoints ${where} ORDER BY account_id, created_at, id`,
    values,
  );
  // Most changes concern accounts without endpoints.
  if (rows.length === 0) return [];
  const secrets = await pool.query<SecretRow>(
    `SELECT endpoint_id, sealed, expires_at FROM webhook_secrets ${where} ORDER BY id DESC`,
    values,
  );
  const secretsOf = new Map<string, SecretRow[]>();
  for (const secret of secrets) {
    const own = secretsOf.get(secret.endpoint_id) ?? [];
    own.push(secret);
    secretsOf.set(secret.endpoint_id, own);
  }
  const accounts = await pool.query<AccountAccessRow>(`${ACCOUNT_ACCESS} WHERE a.id = ANY ($1)`, [
    [...new Set(rows.map((row) => row.account_id))],
  ]);
  const access = new Map(accounts.map((row) => [row.account_id, accountAccessOf(row)]));
  return rows.flatMap((row) => {
    const account = access.get(row.account_id);
    return account === undefined ? [] : [{ row, secrets: secretsOf.get(row.id) ?? [], account }];
  });
}
