import type { EffectivePill, SymbolState } from '../../../domain/order/judge.ts';
import { createPartitionReader } from '../../../domain/order/partition-reader.ts';
import { copySymbols, type Snapshot } from '../../../domain/order/snapshot.ts';
import { postedPill } from '../../../domain/webhooks/events/webhook-message.ts';
import type { LogRecord } from '../../../lib/kafka/log-record.ts';
import type { RegisteredEndpoint } from '../endpoints/registered-endpoint.ts';
import { createOffsetTracker } from './offset-tracker.ts';
import type { StoredPosition } from './position-store.ts';
import type { QueuedPill } from './queued-pill.ts';

export type DispatchPartition = ReturnType<typeof createDispatchPartition>;

export interface DispatchPartitionOptions
  extends Omit<
    Parameters<typeof createPartitionReader>[0],
    'start' | 'symbols' | 'compareContent'
  > {
  readonly stored: StoredPosition;
  endpointsFor(pill: EffectivePill): readonly RegisteredEndpoint[];
  enqueue(endpoint: RegisteredEndpoint, pill: QueuedPill): void;
}

/**
 * One partition of the log, as it is posted to webhooks. Pills before the position are judged without effect, so that the results
 * that depend on them (`prev`, late, repeats) stay the same. Pills that an earlier process stored
 * in messages are left out; pills that it may have attempted singly are sent singly again.
 */
export function createDispatchPartition(options: DispatchPartitionOptions) {
  const { stored, settings } = options;
  const symbols = new Map<string, SymbolState>(stored.snapshot.symbols);
  const start = stored.snapshot.offset;
  const reader = createPartitionReader({ ...options, symbols, start, compareContent: false });
  const offsets = createOffsetTracker(stored.nextOffset);
  const aloneBelow = stored.triedBelow;
  let read = start;
  let isLost = false;

  const isStored = (endpointId: string, offset: number) =>
    stored.joined.get(endpointId)?.some(({ first, last }) => offset >= first && offset <= last) ===
    true;

  const fanOut = (pill: EffectivePill) => {
    const { offset } = pill;
    const receivedMs = pill.received_at / 1_000;
    const endpoints = options.endpointsFor(pill).filter(({ id, settings: { createdAt } }) => {
      return receivedMs >= createdAt.getTime() && !isStored(id, offset);
    });
    offsets.open(offset, endpoints.length);
    if (endpoints.length === 0) return;
    const encoded = postedPill(settings.epoch, pill);
    for (const endpoint of endpoints) {
      let isSettled = false;
      options.enqueue(endpoint, {
        encoded,
        isAlone: offset < aloneBelow,
        isOurs: () => !isLost,
        owner: stored.owner,
        settle() {
          if (!isSettled) offsets.settle(offset);
          isSettled = true;
        },
      });
    }
  };

  return {
    /** First offset that is judged: the offset of the snapshot. */
    start: reader.start,
    offsets,
    /** Pills at or after this offset may be attempted singly only once the offset is written. */
    triedBelow: stored.triedBelow,
    /**
     * Another dispatcher has taken the partition: this process must neither store nor send the
     * waiting pills.
     */
    markLost(): void {
      isLost = true;
    },
    /** Judges records in order and queues each pill for its endpoints. @throws if revoked */
    async apply(records: readonly LogRecord[], signal: AbortSignal): Promise<void> {
      for (const record of records) {
        const answer = reader.read(record, signal);
        const reading = answer instanceof Promise ? await answer : answer;
        read = Math.max(read, record.offset + 1);
        if (record.offset < stored.nextOffset) continue;
        if (reading.kind === 'effect') fanOut(reading.pill);
        offsets.skipTo(record.offset + 1);
      }
    },
    /** A copy of the state of the symbols. */
    snapshot: (): Snapshot => ({
      offset: read,
      symbols: copySymbols(symbols),
    }),
  };
}
