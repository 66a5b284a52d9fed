import type { Ack, OutRecord } from '../../lib/kafka/log-record.ts';
import { ProduceError, type Producer } from '../../lib/kafka/producer.ts';
import type { Encode, TopicSettings } from '../../schemas/avro.ts';
import { createPartitioner } from '../../schemas/partition.ts';
import { identityOf, isSameContent, type Pill, type PillRecord } from '../../schemas/pill.ts';
import type { Micros } from '../../schemas/timestamp.ts';
import {
  type ClaimedPill,
  type Identities,
  isInFlight,
  type KnownPill,
  whenSettled,
} from './identities.ts';
import type { Skew } from './skew.ts';
import type { Symbols } from './symbols.ts';

/** The outcome of one pill. After `unavailable`, it is unknown whether the log has the pill. */
export type Outcome =
  | { readonly kind: 'stored'; readonly known: KnownPill; readonly replayed: boolean }
  | { readonly kind: 'conflict'; readonly known: KnownPill }
  | { readonly kind: 'symbol_limit' }
  | { readonly kind: 'overloaded' | 'unavailable' };

/** How the pills of one request arrived. */
export interface Arrival {
  readonly source: string;
  readonly receivedAt: Micros;
  /** The request is answered by this time of `performance.now()`. */
  readonly deadline: number;
}

export type Intake = ReturnType<typeof createIntake>;

interface IntakeDeps {
  readonly settings: TopicSettings;
  readonly topic: string;
  readonly producer: Producer;
  readonly encode: Encode<PillRecord>;
  readonly identities: Identities;
  readonly symbols: Symbols;
  readonly skew: Skew;
}

type IntakeState = IntakeDeps & { partitionOf: (symbol: string) => number; failedAt: number };

const SYMBOL_LIMIT = { kind: 'symbol_limit' } as const;
const OVERLOADED = { kind: 'overloaded' } as const;
const UNAVAILABLE = { kind: 'unavailable' } as const;

/** Creates the writer of pills to the log; it writes no identity twice, as far as it knows. */
export function createIntake(deps: IntakeDeps) {
  const partitionOf = createPartitioner(deps.settings.partitions);
  const state: IntakeState = { ...deps, partitionOf, failedAt: Number.NEGATIVE_INFINITY };
  return {
    settings: deps.settings,
    skew: deps.skew,
    /** When the log last failed to acknowledge, `performance.now()`; -Infinity if never. */
    failedAt: () => state.failedAt,
    /** What `submit` would answer, as far as this process can know it; changes nothing. */
    preview: (pill: Pill) => preview(state, pill),
    submit: (pill: Pill, arrival: Arrival) => submit(state, pill, arrival),
    /** Submits many pills, in their order, with one call of the producer. */
    submitAll: (pills: readonly Pill[], arrival: Arrival) => submitAll(state, pills, arrival),
  };
}

function submit(state: IntakeState, pill: Pill, arrival: Arrival): Promise<Outcome> {
  const { identities, symbols, producer } = state;
  const identity = identityOf(pill);
  const known = identities.find(identity);
  if (known !== undefined) return submitKnown(state, known, pill, arrival);
  const partition = state.partitionOf(pill.symbol);
  if (!symbols.admit(pill.symbol, partition)) return Promise.resolve(SYMBOL_LIMIT);
  const claimed = identities.claim(identity, pill, partition);
  const record = recordOf(state, pill, partition, arrival);
  return producer.produce([record], arrival.deadline).then(
    (acks) => acknowledge(state, claimed, acks[0]!, arrival),
    (error) => release(state, claimed, error),
  );
}

function preview(
  state: IntakeState,
  pill: Pill,
): Exclude<Outcome, { kind: 'overloaded' | 'unavailable' }> | { readonly kind: 'new' } {
  const known = state.identities.find(identityOf(pill));
  if (known !== undefined) return repeatOf(known, pill);
  const hasRoom = state.symbols.hasRoom(pill.symbol, state.partitionOf(pill.symbol));
  return hasRoom ? { kind: 'new' } : SYMBOL_LIMIT;
}

async function submitKnown(
  state: IntakeState,
  known: ClaimedPill | KnownPill,
  pill: Pill,
  arrival: Arrival,
): Promise<Outcome> {
  if (!isInFlight(known) || (await whenSettled(known))) return repeatOf(known, pill);
  // The first pill failed, so this one is sent instead, within the time that is left.
  return performance.now() < arrival.deadline ? submit(state, pill, arrival) : UNAVAILABLE;
}

async function submitAll(
  state: IntakeState,
  pills: readonly Pill[],
  arrival: Arrival,
): Promise<readonly Outcome[]> {
  const { identities, symbols } = state;
  const outcomes = new Array<Outcome>(pills.length).fill(UNAVAILABLE);
  const claims: { index: number; claimed: ClaimedPill }[] = [];
  const records: OutRecord[] = [];
  const waits: Promise<void>[] = [];
  for (const [index, pill] of pills.entries()) {
    const identity = identityOf(pill);
    const known = identities.find(identity);
    if (known !== undefined) {
      // A pill in flight may be an earlier row of this batch, which settles below.
      if (isInFlight(known)) {
        const wait = whenSettled(known).then((isStored) => {
          if (isStored) outcomes[index] = repeatOf(known, pill);
        });
        waits.push(wait);
      } else outcomes[index] = repeatOf(known, pill);
      continue;
    }
    const partition = state.partitionOf(pill.symbol);
    if (!symbols.admit(pill.symbol, partition)) {
      outcomes[index] = SYMBOL_LIMIT;
      continue;
    }
    claims.push({ index, claimed: identities.claim(identity, pill, partition) });
    records.push(recordOf(state, pill, partition, arrival));
  }
  await produceClaimed(state, claims, records, arrival, outcomes);
  await Promise.all(waits);
  return outcomes;
}

/** Produces all records in one call, and writes the outcome of each claim. */
async function produceClaimed(
  state: IntakeState,
  claims: readonly { readonly index: number; readonly claimed: ClaimedPill }[],
  records: readonly OutRecord[],
  arrival: Arrival,
  outcomes: Outcome[],
): Promise<void> {
  if (records.length === 0) return;
  try {
    const acks = await state.producer.produce(records, arrival.deadline);
    for (const [at, { index, claimed }] of claims.entries()) {
      outcomes[index] = acknowledge(state, claimed, acks[at]!, arrival);
    }
  } catch (error) {
    for (const { index, claimed } of claims) outcomes[index] = release(state, claimed, error);
  }
}

function recordOf(
  { topic, encode }: IntakeState,
  pill: Pill,
  partition: number,
  { receivedAt, source }: Arrival,
): OutRecord {
  const value = encode({
    id: pill.id,
    timestamp: pill.timestamp,
    symbol: pill.symbol,
    gross_spread_percent: pill.gross_spread_percent,
    market_state: pill.market_state,
    confidence: pill.confidence,
    received_at: receivedAt,
    source,
    kind: null,
  });
  return { topic, partition, key: pill.symbol, value };
}

function acknowledge(
  { symbols, skew, identities }: IntakeState,
  claimed: ClaimedPill,
  ack: Ack,
  arrival: Arrival,
): Outcome {
  symbols.confirm(claimed.pill.symbol);
  skew.observe(ack.appendedAt, arrival.receivedAt);
  identities.acknowledge(claimed, ack.offset);
  return { kind: 'stored', known: claimed, replayed: false };
}

function release(state: IntakeState, claimed: ClaimedPill, error: unknown): Outcome {
  state.symbols.release(claimed.pill.symbol, claimed.partition);
  state.identities.release(claimed);
  if (!(error instanceof ProduceError)) throw error;
  if (error.code === 'overloaded') return OVERLOADED;
  state.failedAt = performance.now();
  return UNAVAILABLE;
}

function repeatOf(known: KnownPill, pill: Pill) {
  if (isSameContent(known.pill, pill)) return { kind: 'stored', known, replayed: true } as const;
  return { kind: 'conflict', known } as const;
}
