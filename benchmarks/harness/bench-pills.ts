import { openKafkaSender } from '../../generator/kafka-sender.ts';
import { createKafkaClient, type KafkaClient } from '../../lib/kafka/kafka-client.ts';
import { silentLog } from '../../lib/log/log.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import type { Pill } from '../../schemas/pill.ts';
import { createSchemaClient } from '../../schemas/registry.ts';

/** Addresses of a pills topic. */
export interface PillsLog {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly namespace: string;
}

const BATCH_PILLS = 1_000;

/** Symbols of the benchmarks' pills: `BENCH.0`, `BENCH.1`, … */
export function benchSymbols(count = 50): string[] {
  return Array.from({ length: count }, (_, i) => `BENCH.${i}`);
}

/** A pill with a timestamp of now. @param number varies the spread */
export function makePill(id: string, symbol: string, number: number): Pill {
  return {
    id,
    timestamp: nowMicros(),
    symbol,
    gross_spread_percent: 0.1 + (number % 100) / 1_000,
    market_state: 'open',
    confidence: 87.5,
  };
}

export function openBenchKafka(kafkaBrokers: string): KafkaClient {
  return createKafkaClient({ brokers: kafkaBrokers.split(',') }, 'bench', silentLog);
}

/** Opens a producer that writes pills to the log directly. @param triesMax of each pill */
export function openPillSender(
  { kafkaBrokers, registryUrl, namespace }: PillsLog,
  triesMax: number,
) {
  return openKafkaSender({
    client: openBenchKafka(kafkaBrokers),
    schemas: createSchemaClient(registryUrl, namespace),
    namespace,
    source: 'bench',
    retry: { triesMax, firstMs: 100, maxMs: 1_000, signal: new AbortController().signal },
  });
}

/** Writes pills to the log. @throws when the log does not take all of them */
export async function writePills(
  log: PillsLog,
  count: number,
  pillAt: (number: number) => Pill,
): Promise<void> {
  const sender = await openPillSender(log, 5);
  try {
    for (let from = 0; from < count; from += BATCH_PILLS) {
      const length = Math.min(BATCH_PILLS, count - from);
      const { ok } = await sender.send(Array.from({ length }, (_, i) => pillAt(from + i)));
      if (ok !== length) throw new Error(`The log took ${ok} of ${length} pills.`);
    }
  } finally {
    await sender.close();
  }
}
