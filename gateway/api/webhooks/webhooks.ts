import { databaseName, openClickHouse } from '../../../lib/clickhouse.ts';
import type { Database } from '../../../lib/postgres/database.ts';
import type { Life } from '../../../lib/run.ts';
import { createEndpoints, type Endpoints } from '../../../lib/webhooks/endpoints.ts';
import { openResolver } from '../../../lib/webhooks/resolve.ts';
import { createSeal } from '../../../lib/webhooks/sealing.ts';
import { openSender } from '../../../lib/webhooks/sender.ts';
import { openSelect, type Select } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import type { History } from '../history/history.ts';
import { createTurnstile, type Turnstile } from '../turnstile.ts';

/** Bounds of what webhooks ask ClickHouse: the log of attempts. */
export const ATTEMPT_READ_LIMITS = {
  statementS: 3,
  statementMs: 4_000,
  statementRowsMax: 20_000_000,
  statementBytesMax: 500_000_000,
  readingMax: 4,
  readingOfAccountMax: 2,
  waitingMax: 64,
  waitingMs: 2_000,
} as const;

/** What the routes of webhooks work with. */
export interface Webhooks {
  readonly db: Database;
  readonly endpoints: Endpoints;
  /** Of the log of attempts. */
  readonly select: Select;
  readonly turnstile: Turnstile;
  readonly history: History;
  readonly epoch: string;
  readonly pepper: Buffer;
}

/** Opens them. ClickHouse may be away: then what reads the log of attempts says so, no more. */
export function openWebhooks(
  of: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace' | 'webhooks'>;
    readonly db: Database;
    readonly pepper: Buffer;
    readonly history: History;
    readonly epoch: string;
  },
  life: Life,
): Webhooks {
  const { config, db, pepper, history, epoch } = of;
  const { policy, dnsServers } = config.webhooks;
  const sender = openSender({ policy, resolver: openResolver({ servers: dnsServers }) });
  life.onStop('webhook checks', sender.close);
  const clickhouse = openClickHouse({
    url: config.clickhouseUrl,
    database: databaseName(config.namespace),
    requestTimeoutMs: ATTEMPT_READ_LIMITS.statementMs,
    connectionsMax: ATTEMPT_READ_LIMITS.readingMax,
  });
  life.onStop('clickhouse of webhooks', () => clickhouse.close());
  return {
    ...{ db, history, epoch, pepper },
    endpoints: createEndpoints({ db, seal: createSeal(pepper), checkUrl: sender.check }),
    select: openSelect(clickhouse, life.log, { name: 'webhooks', bounds: ATTEMPT_READ_LIMITS }),
    turnstile: createTurnstile(ATTEMPT_READ_LIMITS),
  };
}
