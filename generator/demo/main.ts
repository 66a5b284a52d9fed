import { createMarkets } from '../../domain/market/quiet/markets.ts';
import { createKafkaClient } from '../../lib/kafka/kafka-client.ts';
import { type Lifecycle, runProcess } from '../../lib/run/run-process.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { createHttpSender } from '../http-sender.ts';
import { openKafkaSender } from '../kafka-sender.ts';
import type { RetryPolicy, Sender } from '../sender.ts';
import { type DemoConfig, readDemoConfig } from './config.ts';
import { startFeed } from './feed.ts';
import { placedListings } from './listings.ts';
import { createMarket } from './market.ts';

const REPORT_INTERVAL_MS = 30_000;

await runProcess('demo', readDemoConfig, async (config, life) => {
  const sender = await openSender(config, life);
  life.onStop('sender', sender.close);
  const markets = createMarkets();
  const feed = startFeed({
    market: createMarket(config.seed, config.pillsPerS, placedListings(markets.venueOf)),
    marketStateOf: (symbol, epochMs) => markets.of(symbol, epochMs).state,
    sender,
    pillsPerS: config.pillsPerS,
    run: `demo-${Date.now().toString(36)}`,
    signal: life.signal,
  });
  const report = () => life.log.info(feed.figures(), 'demo market');
  const timer = setInterval(report, REPORT_INTERVAL_MS);
  life.onStop('feed', async () => {
    clearInterval(timer);
    await feed.ended;
    report();
  });
  life.readyWhen(feed.trouble);
  feed.ended.catch(life.fail);
});

function openSender(config: DemoConfig, { log, signal }: Lifecycle): Sender | Promise<Sender> {
  const retry: RetryPolicy = {
    triesMax: 3,
    firstMs: 100,
    maxMs: 1_000,
    signal,
    onRetry: (reason) => log.warn({ reason }, 'retrying with the same ids'),
  };
  if (config.way === 'http') {
    return createHttpSender({ url: config.ingestUrl, credential: config.credential, retry });
  }
  return openKafkaSender({
    client: createKafkaClient(config.kafka, 'demo', log),
    schemas: createSchemaClient(config.registryUrl, config.namespace),
    namespace: config.namespace,
    source: 'demo',
    retry,
  });
}
