import { readStackFile } from '../../lib/config/stack-file.ts';
import { createKafkaClient } from '../../lib/kafka/kafka-client.ts';
import { silentLog } from '../../lib/log/log.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { createHttpSender } from '../http-sender.ts';
import { openKafkaSender } from '../kafka-sender.ts';
import { RETRY_DEFAULTS, type RetryPolicy, type Sender } from '../sender.ts';
import type { ReplayRequest } from './replay-request.ts';

/** Opens the requested sender; addresses that are not given come from the running stack. */
export async function openSender(
  request: ReplayRequest,
  hooks: Pick<RetryPolicy, 'signal' | 'onRetry'>,
): Promise<Sender> {
  const { namespace } = request;
  const retry = { ...RETRY_DEFAULTS, triesMax: request.tries, ...hooks };
  const stack = () => readStackFile(request.stack);
  if (request.via === 'http') {
    return createHttpSender({
      url: request.ingest ?? stack().ingest,
      credential: request.credential,
      format: request.format,
      connections: request.concurrency,
      retry,
    });
  }
  const brokers = (request.kafka ?? stack().kafka).split(',');
  return openKafkaSender({
    client: createKafkaClient({ brokers }, 'replay', silentLog),
    schemas: createSchemaClient(request.registry ?? stack().registry, namespace),
    namespace,
    source: 'replay',
    retry,
  });
}
