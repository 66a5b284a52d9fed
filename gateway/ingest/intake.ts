import type { Ack, OutRecord, Producer } from '../../lib/kafka/producer.ts';
import { ProduceError } from '../../lib/kafka/producer.ts';
import type { Encode, TopicSettings } from '../../schemas/avro.ts';
import { createPartitioner } from '../../schemas/partition.ts';
import { identityOf, isSameContent, type Pill, type PillRecord } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import { type Identities, type KnownPill, whenSettled } from './identities.ts';
import type { Skew } from './skew.ts';
import type { Symbols } from './symbols.ts';

/** What became of one pill. `unavailable` alone leaves open whether the log has it. */
export type Outcome =
  | { readonly kind: 'stored'; readonly known: KnownPill; readonly replayed: boolean }
  | { readonly kind: 'conflict'; readonly known: KnownPill }
  | { readonly kind: 'symbol_limit' | 'overloaded' | 'unavailable' };

/** How pills of one request came. */
export interface Arrival {
  readonly source: string;
  readonly receivedAt: Micros;
  /** Of `performance.now()`: by then the request is answered. */
  readonly deadline: number;
}

/** Puts pills into the log, each identity once as far as this process knows. */
export interface Intake {
  readonly settings: TopicSettings;
  readonly skew: Skew;
  /** Of `performance.now()`: when the log last failed to acknowledge; -Infinity if never. */
  failedAt(): number;
  submit(pill: Pill, arrival: Arrival): Promise<Outcome>;
  /** As `submit` for many, in their order, with one call of the producer. */
  submitAll(pills: readonly Pill[], arrival: Arrival): Promise<readonly Outcome[]>;
}

export interface IntakeOptions {
  readonly settings: TopicSettings;
  readonly topic: string;
  readonly producer: Producer;
  readonly encode: Encode<PillRecord>;
  readonly identities: Identities;
  readonly symbols: Symbols;
  readonly skew: Skew;
}

const SYMBOL_LIMIT = { kind: 'symbol_limit' } as const;
const OVERLOADED = { kind: 'overloaded' } as const;
const UNAVAILABLE = { kind: 'unavailable' } as const;

export function createIntake(options: IntakeOptions): Intake {
  const { settings, topic, producer, encode, identities, symbols, skew } = options;
  const partitionOf = createPartitioner(settings.partitions);
  let failedAt = Number.NEGATIVE_INFINITY;

  const recordOf = (pill: Pill, partition: number, arrival: Arrival): OutRecord => {
    const value = encode({
      id: pill.id,
      timestamp: pill.timestamp,
      symbol: pill.symbol,
      gross_spread_percent: pill.gross_spread_percent,
      market_state: pill.market_state,
      confidence: pill.confidence,
      received_at: arrival.receivedAt,
      source: arrival.source,
      kind: null,
    });
    return { topic, partition, key: pill.symbol, value };
  };
  const acknowledge = (claimed: KnownPill, ack: Ack, arrival: Arrival): Outcome => {
    symbols.confirm(claimed.pill.symbol);
    skew.observe(ack.appendedAt, arrival.receivedAt);
    identities.acknowledge(claimed, ack.offset);
    return { kind: 'stored', known: claimed, replayed: false };
  };
  const release = (claimed: KnownPill, error: unknown): Outcome => {
    symbols.release(claimed.pill.symbol, claimed.partition);
    identities.release(claimed);
    if (!(error instanceof ProduceError)) throw error;
    if (error.code === 'overloaded') return OVERLOADED;
    failedAt = performance.now();
    return UNAVAILABLE;
  };

  const submit = (pill: Pill, arrival: Arrival): Promise<Outcome> => {
    const identity = identityOf(pill);
    const known = identities.find(identity);
    if (known !== undefined) return submitKnown(known, pill, arrival);
    const partition = partitionOf(pill.symbol);
    if (!symbols.admit(pill.symbol, partition)) return Promise.resolve(SYMBOL_LIMIT);
    const claimed = identities.claim(identity, pill, partition);
    return producer.produce([recordOf(pill, partition, arrival)], arrival.deadline).then(
      (acks) => acknowledge(claimed, acks[0]!, arrival),
      (error) => release(claimed, error),
    );
  };
  const submitKnown = async (known: KnownPill, pill: Pill, arrival: Arrival): Promise<Outcome> => {
    if (known.offset >= 0 || (await whenSettled(known))) return repeatOf(known, pill);
    // The first one failed, so this one is the first now, for what is left of its time.
    return performance.now() < arrival.deadline ? submit(pill, arrival) : UNAVAILABLE;
  };

  return {
    settings,
    skew,
    failedAt: () => failedAt,
    submit,
    async submitAll(pills, arrival) {
      const outcomes = new Array<Outcome>(pills.length).fill(UNAVAILABLE);
      const claims: { readonly index: number; readonly claimed: KnownPill }[] = [];
      const records: OutRecord[] = [];
      const waits: Promise<void>[] = [];
      for (const [index, pill] of pills.entries()) {
        const identity = identityOf(pill);
        const known = identities.find(identity);
        if (known !== undefined) {
          // Perhaps an earlier row of this batch: then the settling below answers it.
          const isStored = known.offset >= 0 || whenSettled(known);
          if (isStored === true) outcomes[index] = repeatOf(known, pill);
          else {
            const wait = isStored.then((stored) => {
              if (stored) outcomes[index] = repeatOf(known, pill);
            });
            waits.push(wait);
          }
          continue;
        }
        const partition = partitionOf(pill.symbol);
        if (!symbols.admit(pill.symbol, partition)) {
          outcomes[index] = SYMBOL_LIMIT;
          continue;
        }
        claims.push({ index, claimed: identities.claim(identity, pill, partition) });
        records.push(recordOf(pill, partition, arrival));
      }
      if (records.length > 0) {
        try {
          const acks = await producer.produce(records, arrival.deadline);
          for (const [at, { index, claimed }] of claims.entries()) {
            outcomes[index] = acknowledge(claimed, acks[at]!, arrival);
          }
        } catch (error) {
          for (const { index, claimed } of claims) outcomes[index] = release(claimed, error);
        }
      }
      await Promise.all(waits);
      return outcomes;
    },
  };
}

function repeatOf(known: KnownPill, pill: Pill): Outcome {
  if (isSameContent(known.pill, pill)) return { kind: 'stored', known, replayed: true };
  return { kind: 'conflict', known };
}
