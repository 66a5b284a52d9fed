import { openContext } from '../lib/kafka/log-context.ts';
import { runProcess } from '../lib/run/run-process.ts';
import { startAnalytics } from './analytics/processor.ts';
import { type ProcessorContext, readPipelineConfig } from './config.ts';
import { startLatest } from './latest/processor.ts';
import { startRejections } from './rejections/processor.ts';
import { TOPOLOGY } from './topology.ts';
import { readWebhooksConfig } from './webhooks/config.ts';
import { startWebhooks } from './webhooks/processor.ts';

const START = {
  latest: startLatest,
  async analytics(context: ProcessorContext): Promise<void> {
    await startAnalytics(context);
    startRejections(context);
  },
};

const [, , name = ''] = process.argv;

if (name === 'latest' || name === 'analytics') {
  await runProcess(
    name,
    () => readPipelineConfig(process.env, name === 'analytics'),
    async (config, life) => START[name](await openContext(name, config, life)),
  );
} else if (name === 'webhooks') {
  await runProcess(
    name,
    () => readWebhooksConfig(process.env),
    async (config, life) => startWebhooks(await openContext(name, config, life)),
  );
} else {
  const known = [...new Set(Object.values(TOPOLOGY).map((one) => one.process))].join(', ');
  process.stderr.write(`Usage: main.js <processor>. There is no processor "${name}": ${known}.\n`);
  process.exit(2);
}
