import { openContext } from '../lib/context.ts';
import { runProcess } from '../lib/run.ts';
import { startAnalytics } from './analytics/processor.ts';
import { readPipelineConfig } from './config.ts';
import { startLatest } from './latest/processor.ts';
import { TOPOLOGY } from './topology.ts';
import { readWebhooksConfig } from './webhooks/config.ts';
import { startWebhooks } from './webhooks/processor.ts';

const START = { latest: startLatest, analytics: startAnalytics };

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
  const known = Object.keys(TOPOLOGY).join(', ');
  process.stderr.write(`Usage: main.js <processor>. There is no processor "${name}": ${known}.\n`);
  process.exit(2);
}
