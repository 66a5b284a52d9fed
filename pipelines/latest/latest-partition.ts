import type { EffectivePill } from '../../domain/order/judge.ts';
import { symbolStateOf } from '../../domain/order/latest-fold.ts';
import { createPartitionReader } from '../../domain/order/partition-reader.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import type { Log } from '../../lib/log/log.ts';
import type { LatestPill, RejectedRecord, TopicSettings } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { describeRejected } from './rejected.ts';

const CONFLICT_REASON = 'An earlier pill has the same symbol and id, but other content.';

/** The changes of a run of records: all must be written before the run counts as processed. */
export interface Changes {
  readonly rejected: RejectedRecord[];
  /** Rows to write: the changed ones, or one that only carries the processed offset. */
  readonly latest: LatestPill[];
  readonly outcomes: Readonly<Record<Outcome, number>>;
}

export type Outcome = 'effect' | 'late' | 'repeat' | 'rejected';

export type LatestPartition = ReturnType<typeof createLatestPartition>;

/** Restores the latest pills of one partition from its rows, and the judge that moves them. */
export function createLatestPartition(options: {
  readonly partition: number;
  readonly start: number;
  readonly settings: TopicSettings;
  /** Rows that the partition had just before `start`. */
  readonly rows: readonly LatestPill[];
  readonly schemas: SchemaClient;
  readonly log: Log;
}) {
  const { partition, settings } = options;
  const rows = new Map(options.rows.map((row) => [row.symbol, row]));
  const reader = createPartitionReader({
    ...options,
    symbols: new Map(options.rows.map((row) => [row.symbol, symbolStateOf(row)])),
    compareContent: true,
  });
  const origin = { epoch: settings.epoch, partition };

  return {
    /** First offset whose records have effect; earlier ones only warm up the repeat window. */
    start: reader.start,
    async apply(records: readonly LogRecord[], signal: AbortSignal): Promise<Changes> {
      const rejected: RejectedRecord[] = [];
      const changed = new Set<string>();
      const outcomes = { effect: 0, late: 0, repeat: 0, rejected: 0 };
      const reject = (record: LogRecord, why: Parameters<typeof describeRejected>[2]) => {
        outcomes.rejected += 1;
        rejected.push(describeRejected(origin, record, why));
      };
      let last = -1;
      for (const record of records) {
        const answer = reader.read(record, signal);
        const reading = answer instanceof Promise ? await answer : answer;
        if (reading.kind === 'warmed') continue;
        last = record.offset;
        if (reading.kind === 'rejected') reject(record, reading);
        else if (reading.kind === 'effect') {
          const { pill } = reading;
          outcomes[pill.late ? 'late' : 'effect'] += 1;
          rows.set(pill.symbol, rowAfter(rows.get(pill.symbol), pill, settings.epoch));
          changed.add(pill.symbol);
        } else if (reading.conflict) {
          const { source } = reading.pill;
          reject(record, { code: 'id_conflict', reason: CONFLICT_REASON, source });
        } else outcomes.repeat += 1;
      }
      return { rejected, latest: rowsToWrite(rows, changed, last), outcomes };
    },
  };
}

/** A symbol's row after a pill: a late pill only moves `last_offset`. */
function rowAfter(row: LatestPill | undefined, pill: EffectivePill, epoch: string): LatestPill {
  if (pill.late && row !== undefined) {
    return { ...row, last_offset: pill.last, processed_offset: pill.offset };
  }
  return {
    epoch,
    offset: pill.offset,
    last_offset: pill.last,
    processed_offset: pill.offset,
    prev_offset: pill.prev,
    id: pill.id,
    timestamp: pill.timestamp,
    symbol: pill.symbol,
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
    received_at: pill.received_at,
    source: pill.source,
    backfill: pill.backfill,
  };
}

/**
 * All changed rows carry the run's last offset: they go out as one atomic batch. When nothing
 * changed (repeats, rejected records), any one row is written again to record how far the log was read.
 */
function rowsToWrite(
  rows: Map<string, LatestPill>,
  changed: ReadonlySet<string>,
  last: number,
): LatestPill[] {
  if (last < 0) return [];
  const [any] = changed.size > 0 ? [] : rows.keys();
  const symbols = any === undefined ? [...changed] : [any];
  return symbols.map((symbol) => {
    const row = { ...rows.get(symbol)!, processed_offset: last };
    rows.set(symbol, row);
    return row;
  });
}
