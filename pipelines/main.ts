import { openContext } from '../lib/kafka/log-context.ts';
import { runProcess } from '../lib/run/run-process.ts';
import { type ProcessorContext, readPipelineConfig } from './config.ts';
import { readDestinationsConfig } from './destinations/config.ts';
import { TOPOLOGY } from './topology.ts';
import { readWebhooksConfig } from './webhooks/config.ts';

/** Loaded on demand: a process must not report the metrics of processors that it does not run. */
const START = {
  async latest(context: ProcessorContext): Promise<void> {
    const { startLatest } = await import('./latest/processor.ts');
    await startLatest(context);
  },
  async analytics(context: ProcessorContext): Promise<void> {
    const { startAnalytics } = await import('./analytics/processor.ts');
    const { startRejections } = await import('./rejections/processor.ts');
    await startAnalytics(context);
    startRejections(context);
  },
};

const [, , name = ''] = process.argv;

if (name === 'latest' || name === 'analytics') {
  await runProcess(
    name,
    (env) => readPipelineConfig(env, name === 'analytics'),
    async (config, life) => START[name](await openContext(name, config, life)),
  );
} else if (name === 'webhooks') {
  await runProcess(name, readWebhooksConfig, async (config, life) => {
    const { startWebhooks } = await import('./webhooks/processor.ts');
    await startWebhooks(await openContext(name, config, life));
  });
} else if (name === 'destinations') {
  await runProcess(name, readDestinationsConfig, async (config, life) => {
    const { startDestinations } = await import('./destinations/processor.ts');
    await startDestinations(await openContext(name, config, life));
  });
} else {
  const known = [...new Set(Object.values(TOPOLOGY).map((one) => one.process))].join(', ');
  process.stderr.write(`Usage: main.js <processor>. There is no processor "${name}": ${known}.\n`);
  process.exit(2);
}
