import { runProcess } from '../../lib/run.ts';
import { createHttpSender } from '../http-sender.ts';
import { readDemoConfig } from './config.ts';
import { startFeed } from './feed.ts';
import { createMarket } from './market.ts';

await runProcess('demo', readDemoConfig, async (config, life) => {
  const sender = createHttpSender({
    url: config.ingestUrl,
    credential: config.credential,
    retry: {
      triesMax: 3,
      firstMs: 100,
      maxMs: 1_000,
      signal: life.signal,
      onRetry: (reason) => life.log.warn({ reason }, 'sends again, with the same ids'),
    },
  });
  life.onStop('sender', sender.close);
  const feed = startFeed({
    market: createMarket(config.seed),
    sender,
    pillsPerS: config.pillsPerS,
    run: `demo-${Date.now().toString(36)}`,
    signal: life.signal,
  });
  life.onStop('feed', () => feed.ended);
  life.readyWhen(feed.trouble);
  feed.ended.catch(life.fail);
});
