import { type Selectable, sql } from 'kysely';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Tables } from '../../../lib/postgres/tables.ts';
import type { Seal } from '../../access/sealing.ts';
import type { EventType } from '../events/event-catalogue.ts';
import type { DisabledReason, WebhookEndpoint } from './webhook-endpoint.ts';

export type EndpointRow = Selectable<Tables['webhook_endpoints']>;

/** Custom headers of an endpoint: name and value, as given. */
export type OwnHeaders = Readonly<Record<string, string>>;

/** Reads a row of `webhook_endpoints`; its headers stay sealed. */
export function endpointOf(row: EndpointRow): WebhookEndpoint {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    description: row.description,
    eventTypes: row.event_types as EventType[],
    filter: {
      symbols: row.symbols,
      minConfidence: row.min_confidence ?? undefined,
      minSpread: row.min_spread ?? undefined,
      maxSpread: row.max_spread ?? undefined,
      states: row.states,
      backfill: row.backfill,
    },
    ratePerS: row.rate_per_s,
    maxAgeS: row.max_age_s,
    status: row.status,
    disabledReason: (row.disabled_reason ?? undefined) as DisabledReason | undefined,
    failingSince: row.failing_since ?? undefined,
    restingUntil: row.resting_until ?? undefined,
    backlogFullSince: row.backlog_full_since ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** @param endpointId headers sealed for one endpoint do not open for another */
export function sealHeaders(seal: Seal, headers: OwnHeaders, endpointId: string): Buffer | null {
  if (Object.keys(headers).length === 0) return null;
  return seal.seal(Buffer.from(JSON.stringify(headers), 'utf8'), endpointId);
}

/** @throws SealError */
export function openHeaders(seal: Seal, row: Pick<EndpointRow, 'id' | 'headers'>): OwnHeaders {
  if (row.headers === null) return {};
  return JSON.parse(seal.open(row.headers, row.id).toString('utf8'));
}

/** Rows of an account, each with the number of its older endpoints. */
export function selectRanked(db: Database, accountId: string) {
  return db.selectFrom((eb) =>
    eb
      .selectFrom('webhook_endpoints')
      .selectAll()
      .select(sql<string>`row_number() OVER (ORDER BY created_at, id) - 1`.as('rank'))
      .where('account_id', '=', accountId)
      .as('ranked'),
  );
}
