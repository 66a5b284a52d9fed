import type { Pepper } from '../../../domain/access/pepper.ts';
import { createSeal } from '../../../domain/access/sealing.ts';
import { createEndpoints } from '../../../domain/webhooks/endpoints/endpoint-operations.ts';
import { openSender } from '../../../domain/webhooks/send/webhook-sender.ts';
import {
  customersDatabaseName,
  openClickHouse,
} from '../../../lib/clickhouse/clickhouse-client.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import { createTurns } from '../../../lib/rate/turns.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { openSelect } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import type { History } from '../history/history.ts';

/** Bounds of reading the log of attempts in ClickHouse. */
export const ATTEMPT_READ_LIMITS = {
  statementS: 3,
  statementMs: 4_000,
  statementRowsMax: 20_000_000,
  statementBytesMax: 500_000_000,
  activeMax: 4,
  activeOfAccountMax: 2,
  waitingMax: 64,
  waitingOfAccountMax: 32,
  waitingMs: 2_000,
} as const;

/** Dependencies of the webhook routes. */
export type Webhooks = ReturnType<typeof openWebhooks>;

/** Opens the dependencies. Without ClickHouse, only routes that read the log of attempts fail. */
export function openWebhooks(
  config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace' | 'egress'>,
  of: {
    readonly db: Database;
    readonly pepper: Pepper;
    readonly history: History;
    readonly epoch: string;
  },
  life: Lifecycle,
) {
  const sender = openSender(config.egress);
  life.onStop('webhook checks', sender.close);
  const clickhouse = openClickHouse({
    url: config.clickhouseUrl,
    database: customersDatabaseName(config.namespace),
    requestTimeoutMs: ATTEMPT_READ_LIMITS.statementMs,
    connectionsMax: ATTEMPT_READ_LIMITS.activeMax,
  });
  life.onStop('clickhouse of webhooks', () => clickhouse.close());
  const seal = createSeal(of.pepper);
  return {
    ...of,
    endpoints: createEndpoints({ db: of.db, seal, checkUrl: sender.check }),
    /** Reads the log of attempts. */
    select: openSelect(clickhouse, life.log, { name: 'webhooks', bounds: ATTEMPT_READ_LIMITS }),
    turns: createTurns(ATTEMPT_READ_LIMITS),
  };
}
