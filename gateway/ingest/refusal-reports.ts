import { createKafkaClient } from '../../lib/kafka/kafka-client.ts';
import { openProducer, PRODUCER_LIMITS } from '../../lib/kafka/producer.ts';
import type { Log } from '../../lib/log/log.ts';
import { nowMicros } from '../../lib/timing/clock.ts';
import { runEvery } from '../../lib/timing/run-every.ts';
import { createEncoder, type RefusalReport } from '../../schemas/avro.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import type { IngestConfig } from './config.ts';
import type { Refusals } from './refusals.ts';

/** A killed process loses what it refused since its last report. */
const REPORT_EVERY_MS = 1_000;
/** After so many intervals without a refusal, the connection is closed. */
const IDLE_INTERVALS = 60;
const SEND_MS = 1_000;

/**
 * Reports refusals to the log, on a connection of their own: what goes wrong with it, or with its
 * topic, reaches no pill. Nothing is opened until something is refused.
 */
export function startRefusalReports(refusals: Refusals, config: IngestConfig, log: Log) {
  let sender: Awaited<ReturnType<typeof openSender>> | undefined;
  let idle = 0;
  const closeSender = async () => {
    const last = sender;
    sender = undefined;
    await last?.close();
  };
  const send = async () => {
    const report = refusals.report();
    if (report === undefined) {
      idle += 1;
      if (idle >= IDLE_INTERVALS) await closeSender();
      return;
    }
    idle = 0;
    sender ??= await openSender(config, log);
    await sender.send(report);
    refusals.acknowledge(report, nowMicros());
  };
  const reports = runEvery({ name: 'refusal reports', everyMs: REPORT_EVERY_MS, log, run: send });
  return {
    /** Sends what is left, for about a second. */
    async close(): Promise<void> {
      await reports.close();
      await send().catch((error) => log.warn({ err: error }, 'the last refusals are not reported'));
      await closeSender();
    },
  };
}

async function openSender({ kafka, registryUrl, namespace }: IngestConfig, log: Log) {
  const schemas = createSchemaClient(registryUrl, namespace);
  const encode = createEncoder('refusal-report', await schemas.register('refused'));
  const client = createKafkaClient(kafka, 'pillole-ingest-refusals', log);
  const producer = await openProducer(client, { ...PRODUCER_LIMITS, deadlineMs: SEND_MS });
  const topic = topicName(namespace, 'refused');
  return {
    send: (report: RefusalReport) =>
      producer.produce([{ topic, partition: 0, key: report.reporter, value: encode(report) }]),
    close: producer.close,
  };
}
