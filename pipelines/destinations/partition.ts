import type { EffectivePill } from '../../domain/order/judge.ts';
import { createPartitionReader } from '../../domain/order/partition-reader.ts';
import { copySymbols, type Snapshot } from '../../domain/order/snapshot.ts';
import { includesSymbol, passesEndpoint } from '../../domain/webhooks/endpoints/endpoint-filter.ts';
import type { EndpointFilter } from '../../domain/webhooks/endpoints/webhook-endpoint.ts';
import type { LogRecord } from '../../lib/kafka/log-record.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { LIMITS } from './limits.ts';
import type { StoredPosition } from './position-store.ts';

/** What is delivered next of a partition. */
export interface Cut {
  readonly endOffset: number;
  readonly pills: readonly EffectivePill[];
  readonly appendedAt: Micros;
  /** State of the symbols before `endOffset`, if one is due. */
  readonly snapshot: Snapshot | undefined;
  readonly filter: EndpointFilter;
}

export type Partition = ReturnType<typeof createPartition>;

type ReaderOptions = Parameters<typeof createPartitionReader>[0];

interface PartitionOptions extends Omit<ReaderOptions, 'start' | 'symbols' | 'compareContent'> {
  readonly stored: StoredPosition;
  windowS(): number;
  filter(): EndpointFilter;
  /** Whether the destination holds as many pills as it may. */
  isFull(): boolean;
}

/**
 * One partition of the log as a destination gets it: records are judged, pills that pass the filter
 * are held until their piece ends. A piece ends where a record of another window follows, or with a
 * bound of pills; and a window that is over ends while nothing follows.
 */
export function createPartition(options: PartitionOptions) {
  const { stored } = options;
  const symbols = copySymbols(stored.snapshot.symbols);
  const start = stored.snapshot.offset;
  const reader = createPartitionReader({ ...options, symbols, start, compareContent: false });
  let { plan } = stored;
  /** Of the piece that is held: a change ends the piece, so that a repeat has the same pills. */
  let filter: EndpointFilter | undefined = plan?.filter;
  let pills: EffectivePill[] = [];
  let appendedAt = 0;
  /** Number of the window of the records since the last cut. */
  let window: number | undefined;
  let next = stored.nextOffset;
  let [readAtMs, snapshotAtMs] = [performance.now(), performance.now()];
  const windowOf = (at: Micros) => Math.floor(at / (options.windowS() * 1_000_000));
  const cut = (): Cut => {
    const isDue = performance.now() - snapshotAtMs > LIMITS.snapshotIntervalMs;
    if (isDue) snapshotAtMs = performance.now();
    const made = {
      endOffset: next,
      pills,
      appendedAt,
      snapshot: isDue ? { offset: next, symbols: copySymbols(symbols) } : undefined,
      filter: filter ?? options.filter(),
    };
    pills = [];
    window = undefined;
    plan = undefined;
    filter = undefined;
    return made;
  };
  /** Whether the piece ends before this record. */
  const endsBefore = ({ offset, appendedAt: at }: LogRecord) => {
    if (plan !== undefined) return offset >= plan.endOffset;
    if (window === undefined) return false;
    if (windowOf(at) > window || filter !== options.filter()) return true;
    return pills.length > 0 && (pills.length >= LIMITS.piecePillsMax || options.isFull());
  };

  return {
    /** First offset that is judged. */
    start: reader.start,
    held: () => pills.length,
    /** Takes one record. @returns the piece that ends before the record, if one does */
    async take(record: LogRecord, signal: AbortSignal): Promise<Cut | undefined> {
      const { offset, appendedAt: at } = record;
      readAtMs = performance.now();
      const isNew = offset >= stored.nextOffset;
      const made = isNew && endsBefore(record) ? cut() : undefined;
      const answer = reader.read(record, signal);
      const reading = answer instanceof Promise ? await answer : answer;
      if (!isNew) return undefined;
      next = offset + 1;
      window ??= windowOf(at);
      filter ??= options.filter();
      if (reading.kind === 'effect' && passes(filter, reading.pill)) {
        if (pills.length === 0) appendedAt = at;
        pills.push(reading.pill);
      }
      return made;
    },
    /** The piece of a window that is over, as long as no further record shows its end. */
    takeOver(nowMs: number): Cut | undefined {
      if (plan !== undefined) return next >= plan.endOffset ? cut() : undefined;
      if (window === undefined || performance.now() - readAtMs < LIMITS.idleMs) return undefined;
      const endMs = (window + 1) * options.windowS() * 1_000;
      return nowMs > endMs + LIMITS.windowGraceMs ? cut() : undefined;
    },
  };
}

function passes(filter: EndpointFilter, pill: EffectivePill): boolean {
  return includesSymbol(filter, pill.symbol) && passesEndpoint(filter, pill);
}
