import { decodeWith } from '../../lib/decode.ts';
import type { LogRecord } from '../../lib/kafka/consume.ts';
import type { Log } from '../../lib/log.ts';
import {
  createPartitionJudge,
  type EffectivePill,
  type SymbolState,
} from '../../lib/order/judge.ts';
import { orderOf } from '../../lib/order/latest-fold.ts';
import type { Decoder, LatestPill, RejectedRecord, TopicSettings } from '../../schemas/avro.ts';
import type { PillRecord } from '../../schemas/pill.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import { describeRejected } from './rejected.ts';

/** What a run of records changed: everything that must be written before it counts as done. */
export interface Changes {
  readonly rejected: RejectedRecord[];
  /** Rows to write: the changed ones, or one that only carries the progress. */
  readonly latest: LatestPill[];
  readonly outcomes: Readonly<Record<Outcome, number>>;
}

export type Outcome = 'effect' | 'late' | 'repeat' | 'rejected';

/** The latest pills of one partition, and the judge that moves them. */
export interface LatestPartition {
  /** First offset whose records have effect here; those before it only warm the repeat window. */
  readonly start: number;
  apply(records: readonly LogRecord[], signal: AbortSignal): Promise<Changes>;
  get(symbol: string): LatestPill | undefined;
}

export interface LatestPartitionOptions {
  readonly partition: number;
  readonly start: number;
  readonly settings: TopicSettings;
  /** Rows that the partition had just before `start`. */
  readonly rows: readonly LatestPill[];
  readonly decoder: Decoder<PillRecord>;
  readonly schemas: SchemaClient;
  readonly log: Log;
}

/** Restores a partition from its rows. */
export function createLatestPartition(options: LatestPartitionOptions): LatestPartition {
  const { partition, start, settings, log } = options;
  const rows = new Map(options.rows.map((row) => [row.symbol, row]));
  const judge = createPartitionJudge({
    partition,
    settings,
    symbols: new Map(options.rows.map((row) => [row.symbol, stateOf(row)])),
    compareContent: true,
  });
  const place = { epoch: settings.epoch, partition };

  return {
    start,
    get: (symbol) => rows.get(symbol),
    async apply(records, signal) {
      const rejected: RejectedRecord[] = [];
      const changed = new Set<string>();
      const outcomes = { effect: 0, late: 0, repeat: 0, rejected: 0 };
      const reject = (record: LogRecord, code: string, reason: string) => {
        outcomes.rejected += 1;
        rejected.push(describeRejected(place, record, code, reason));
      };
      let last = -1;
      for (const record of records) {
        const answer = decodeWith(options.decoder, options.schemas, record.value, { signal, log });
        const decoded = answer instanceof Promise ? await answer : answer;
        const { offset, key, appendedAt } = record;
        if (offset < start) {
          if (decoded.ok) judge.warmUp(decoded.value, key, offset, appendedAt);
          continue;
        }
        last = offset;
        if (!decoded.ok) {
          reject(record, decoded.code, decoded.reason);
          continue;
        }
        const verdict = judge.judge(decoded.value, key, offset, appendedAt);
        if (verdict.kind === 'rejected') reject(record, verdict.code, verdict.reason);
        else if (verdict.kind === 'effect') {
          outcomes[verdict.pill.late ? 'late' : 'effect'] += 1;
          const row = rowAfter(rows.get(verdict.pill.symbol), verdict.pill, settings.epoch);
          rows.set(row.symbol, row);
          changed.add(row.symbol);
        } else if (verdict.conflict) {
          reject(
            record,
            'id_conflict',
            'A pill with this symbol and id, but other content, came first.',
          );
        } else outcomes.repeat += 1;
      }
      return { rejected, latest: rowsToWrite(rows, changed, last), outcomes };
    },
  };
}

function stateOf(row: LatestPill): SymbolState {
  return { order: orderOf(row), offset: row.offset, lastLive: row.last_offset };
}

/** A symbol's row after a pill: a late one only moves `last_offset`. */
function rowAfter(row: LatestPill | undefined, pill: EffectivePill, epoch: string): LatestPill {
  const last = pill.backfill ? (row?.last_offset ?? null) : pill.offset;
  if (pill.late && row !== undefined) {
    return { ...row, last_offset: last, processed_offset: pill.offset };
  }
  return {
    epoch,
    offset: pill.offset,
    last_offset: last,
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
 * changed (repeats, rejects), any one row is written again to tell how far the log was read.
 */
function rowsToWrite(
  rows: Map<string, LatestPill>,
  changed: ReadonlySet<string>,
  last: number,
): LatestPill[] {
  if (last < 0) return [];
  const symbols = changed.size > 0 ? [...changed] : [...rows.keys()].slice(0, 1);
  return symbols.map((symbol) => {
    const row = { ...rows.get(symbol)!, processed_offset: last };
    rows.set(symbol, row);
    return row;
  });
}
