import { openKafkaSender } from '../generator/kafka-sender.ts';
import { createKafkaClient } from '../lib/kafka/client.ts';
import { silentLog } from '../lib/log.ts';
import { createSchemaClient } from '../schemas/registry.ts';

/** A topic of pills: where it is, and in which namespace. */
export interface LogPlace {
  readonly kafkaBrokers: string;
  readonly registryUrl: string;
  readonly namespace: string;
}

/** Opens a producer that writes pills to the log directly. @param triesMax of each pill */
export function openPillSender(
  { kafkaBrokers, registryUrl, namespace }: LogPlace,
  triesMax: number,
) {
  return openKafkaSender({
    client: createKafkaClient(kafkaBrokers.split(','), 'bench', silentLog),
    schemas: createSchemaClient(registryUrl, namespace),
    namespace,
    source: 'bench',
    retry: { triesMax, firstMs: 100, maxMs: 1_000, signal: new AbortController().signal },
  });
}
