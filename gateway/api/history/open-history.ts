import type { Pepper } from '../../../domain/access/pepper.ts';
import { createTurns } from '../../../lib/rate/turns.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import { createPartitioner } from '../../../schemas/partition.ts';
import type { ReadLogEnd } from '../clickhouse/log-end.ts';
import { openOwnSelect } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import type { FindUnknown } from '../server/known-symbols.ts';
import { createCoverageWatcher } from './coverage-watcher.ts';
import { createHistory } from './history.ts';
import { historyEndpoint } from './history-route.ts';
import { HISTORY_LIMITS } from './limits.ts';

/** Opens history and makes its route. While ClickHouse is down, only reads of history fail. */
export function openHistory(
  options: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>;
    readonly settings: TopicSettings;
    readonly logEnd: ReadLogEnd;
    readonly pepper: Pepper;
    readonly findUnknown: FindUnknown;
  },
  life: Lifecycle,
) {
  const { config, settings, logEnd, pepper, findUnknown } = options;
  const { epoch, partitions } = settings;
  const select = openOwnSelect(config, life, {
    name: 'history',
    bounds: HISTORY_LIMITS,
    connectionsMax: HISTORY_LIMITS.activeMax + 1, // one for the table's coverage
    settings: { max_threads: HISTORY_LIMITS.statementThreads },
  });
  const history = createHistory({
    select,
    coverage: createCoverageWatcher(select, epoch),
    turns: createTurns(HISTORY_LIMITS),
    topic: { epoch, partitions, partitionOf: createPartitioner(partitions) },
    logEnd,
  });
  return { history, route: historyEndpoint({ history, epoch, pepper, findUnknown }) };
}
