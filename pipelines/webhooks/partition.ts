import type { LogRecord } from '../../lib/kafka/consume.ts';
import type { Log } from '../../lib/log.ts';
import type { EffectivePill, SymbolState } from '../../lib/order/judge.ts';
import { createPartitionReader } from '../../lib/partition-reader.ts';
import { pillText } from '../../lib/webhooks/message.ts';
import type { TopicSettings } from '../../schemas/avro.ts';
import type { SchemaClient } from '../../schemas/registry.ts';
import type { Listener } from './audience.ts';
import { createFrontier, type Frontier } from './frontier.ts';
import type { LanePill } from './lane.ts';
import type { KeptPosition, Snapshot } from './store.ts';

/** One partition of the log on its way to webhooks. */
export interface WebhookPartition {
  /** First offset that is judged: where the snapshot stands. */
  readonly start: number;
  readonly frontier: Frontier;
  /** Judges records in order and hands each pill to those that want it. @throws if revoked */
  apply(records: readonly LogRecord[], signal: AbortSignal): Promise<void>;
  /** No pill at or after it may be attempted by itself before that is written. */
  triedBelow: number;
  /** Another dispatcher has it: what waits here is not ours to keep or send. */
  lose(): void;
  /** State of the symbols now, copied. */
  snapshot(): Snapshot;
}

export interface WebhookPartitionOptions {
  readonly partition: number;
  readonly kept: KeptPosition;
  readonly settings: TopicSettings;
  readonly schemas: SchemaClient;
  readonly log: Log;
  audienceOf(pill: EffectivePill): readonly Listener[];
  offer(listener: Listener, pill: LanePill): void;
}

/**
 * Pills before the position are judged without effect: what they leave behind (`prev`, late,
 * repeats) must be as it was. Those that an earlier life kept as messages are left out, and those
 * that it may have attempted by themselves go by themselves again.
 */
export function createWebhookPartition(options: WebhookPartitionOptions): WebhookPartition {
  const { partition, kept, settings } = options;
  const symbols = new Map<string, SymbolState>(kept.snapshot.symbols);
  const reader = createPartitionReader({
    ...{ partition, settings, symbols, schemas: options.schemas, log: options.log },
    ...{ start: kept.snapshot.offset, compareContent: false },
  });
  const frontier = createFrontier(kept.nextOffset);
  const aloneBelow = kept.triedBelow;
  let read = kept.snapshot.offset;
  let isLost = false;

  const isKept = (endpointId: string, offset: number) =>
    kept.joined.get(endpointId)?.some(({ first, last }) => offset >= first && offset <= last) ===
    true;

  const hand = (pill: EffectivePill) => {
    const { offset } = pill;
    const createdBefore = pill.received_at / 1_000;
    const wanted = options.audienceOf(pill).filter(({ id, endpoint }) => {
      return createdBefore >= endpoint.createdAt.getTime() && !isKept(id, offset);
    });
    frontier.opened(offset, wanted.length);
    if (wanted.length === 0) return;
    const text = pillText(settings.epoch, pill);
    for (const listener of wanted) {
      let isSettled = false;
      options.offer(listener, {
        ...{ text, isAlone: offset < aloneBelow, isOurs: () => !isLost },
        owner: kept.owner,
        settle() {
          if (!isSettled) frontier.settled(offset);
          isSettled = true;
        },
      });
    }
  };

  return {
    start: reader.start,
    frontier,
    triedBelow: kept.triedBelow,
    lose() {
      isLost = true;
    },
    async apply(records, signal) {
      for (const record of records) {
        const answer = reader.read(record, signal);
        const reading = answer instanceof Promise ? await answer : answer;
        read = Math.max(read, record.offset + 1);
        if (record.offset < kept.nextOffset) continue;
        if (reading.kind === 'effect') hand(reading.pill);
        frontier.passed(record.offset + 1);
      }
    },
    snapshot: () => ({
      offset: read,
      symbols: new Map([...symbols].map(([symbol, state]) => [symbol, { ...state }])),
    }),
  };
}
