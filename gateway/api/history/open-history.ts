import { databaseName, openClickHouse } from '../../../lib/clickhouse.ts';
import type { Life } from '../../../lib/run.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import { createPartitioner } from '../../../schemas/partition.ts';
import { openSelect } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import type { AskLogEnd } from '../log-end.ts';
import { createTurnstile } from '../turnstile.ts';
import { createHistory } from './history.ts';
import { historyEndpoint } from './history-route.ts';
import { HISTORY_LIMITS } from './limits.ts';
import { createProgress } from './progress.ts';

/**
 * Opens history, and makes its route. ClickHouse may be away: then what reads it says so, nothing
 * else does.
 */
export function openHistory(
  of: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>;
    readonly settings: TopicSettings;
    readonly logEnd: AskLogEnd;
    readonly pepper: Buffer;
  },
  life: Life,
) {
  const { epoch, partitions } = of.settings;
  const clickhouse = openClickHouse({
    url: of.config.clickhouseUrl,
    database: databaseName(of.config.namespace),
    requestTimeoutMs: HISTORY_LIMITS.statementMs,
    connectionsMax: HISTORY_LIMITS.readingMax + 1, // one for how far it is
  });
  life.onStop('clickhouse', () => clickhouse.close());
  const select = openSelect(clickhouse, life.log, {
    ...{ name: 'history', bounds: HISTORY_LIMITS },
    settings: { max_threads: HISTORY_LIMITS.statementThreads },
  });
  const history = createHistory({
    ...{ select, logEnd: of.logEnd, turnstile: createTurnstile(HISTORY_LIMITS) },
    progress: createProgress(select, epoch),
    log: { epoch, partitions, partitionOf: createPartitioner(partitions) },
  });
  return { history, route: historyEndpoint({ history, epoch, pepper: of.pepper }) };
}
