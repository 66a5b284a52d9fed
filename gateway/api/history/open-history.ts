import type { Pepper } from '../../../domain/access/pepper.ts';
import { createTurns } from '../../../lib/rate/turns.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import { createPartitioner } from '../../../schemas/partition.ts';
import type { ReadLogEnd } from '../clickhouse/log-end.ts';
import { openReadBytes } from '../clickhouse/read-bytes.ts';
import { openOwnClickHouse, openSelect } from '../clickhouse/select.ts';
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
  const reading = {
    name: 'history',
    bounds: HISTORY_LIMITS,
    connectionsMax: HISTORY_LIMITS.activeMax + 1, // one for the table's coverage
    settings: { max_threads: HISTORY_LIMITS.statementThreads },
    bytesMax: HISTORY_LIMITS.bodyBytesMax,
  };
  const clickhouse = openOwnClickHouse(config, life, reading);
  const select = openSelect(clickhouse, life.log, reading);
  const history = createHistory({
    select,
    readBytes: openReadBytes(clickhouse, life.log, reading),
    coverage: createCoverageWatcher(select, epoch),
    turns: createTurns(HISTORY_LIMITS),
    topic: { epoch, partitions, partitionOf: createPartitioner(partitions) },
    logEnd,
  });
  return { history, route: historyEndpoint({ history, epoch, pepper, findUnknown }) };
}
