import type { RouteOptions } from 'fastify';
import type { Markets } from '../../../domain/market/quiet/markets.ts';
import type { KafkaClient } from '../../../lib/kafka/kafka-client.ts';
import type { Lifecycle } from '../../../lib/run/run-process.ts';
import { nowMicros } from '../../../lib/timing/clock.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import { openOwnSelect } from '../clickhouse/select.ts';
import type { ApiConfig } from '../config.ts';
import type { LastSpreads } from '../console/market-route.ts';
import type { LatestLag } from '../pills/latest-lag.ts';
import type { LatestView } from '../pills/latest-view.ts';
import { createFindUnknown } from '../server/known-symbols.ts';
import { createEvaluator } from './evaluator.ts';
import { createFeedHealth } from './feed-health.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { openLogCache } from './log-cache.ts';
import { createPillSearch } from './pill-search.ts';
import { prefetchWindows } from './prefetch.ts';
import { createPillStore } from './stored-pills.ts';
import { symbolsEndpoint } from './symbols-route.ts';
import { createVerifier } from './verifier.ts';
import { verifyEndpoint } from './verify-route.ts';
import { createWindowFiller } from './window-filler.ts';

const SAMPLE_INTERVAL_MS = 250;
const PREFETCH_PAUSE_MS = 5_000;

/**
 * Opens the dependencies of verdicts and makes the routes `GET /api/market/verify` and
 * `GET /api/symbols`; the page reads the last spreads. The process is ready once the log cache has caught up with the log;
 * ClickHouse may be down.
 * @throws if the log cannot be read
 */
export async function openVerify(
  options: {
    readonly config: Pick<ApiConfig, 'clickhouseUrl' | 'namespace'>;
    readonly client: KafkaClient;
    readonly schemas: SchemaClient;
    readonly settings: TopicSettings;
    readonly view: LatestView;
    readonly lag: () => LatestLag;
    readonly markets: Markets;
  },
  life: Lifecycle,
): Promise<{ readonly routes: RouteOptions[]; readonly lastSpreads: LastSpreads }> {
  const { config, client, schemas, settings, view, lag, markets } = options;
  const { log, signal, fail: onFatal } = life;
  const { namespace } = config;
  const { epoch } = settings;
  const nowMs = () => nowMicros() / 1000;
  const source = { client, schemas, namespace, settings };
  // Comes first: only this step can fail and be retried, and nothing else is open yet.
  const cache = await openLogCache({ ...source, log, signal, nowMs, onFatal });
  life.onStop('verify log cache', cache.close);
  const select = openOwnSelect(config, life, {
    name: 'verify',
    bounds: VERIFY_LIMITS,
    connectionsMax: VERIFY_LIMITS.statementsMax,
    settings: { max_threads: 2, optimize_read_in_order: 1 },
  });
  const store = createPillStore(select, epoch);
  let isCaughtUp = false;
  cache.caughtUp.then(() => {
    isCaughtUp = true;
  }, onFatal);
  life.readyWhen(() => (isCaughtUp ? undefined : 'reading the newest pills'));
  const health = createFeedHealth(
    {
      isCaughtUp: () => isCaughtUp && view.isReady(),
      isConnected: () => cache.isConnected() && view.isConnected(),
      processor: () => lag().state,
    },
    nowMs,
  );
  const timer = setInterval(health.sample, SAMPLE_INTERVAL_MS);
  life.onStop('verify timer', () => clearInterval(timer));
  const fillWindow = createWindowFiller(cache, store);
  const findUnknown = createFindUnknown(view);
  const facts = { view, findUnknown, cache, fillWindow, markets, health, nowMicros };
  const evaluator = createEvaluator(facts);
  const search = createPillSearch({ cache, store, view, epoch });
  const prefetch = { fillWindow, view, pauseMs: PREFETCH_PAUSE_MS };
  cache.caughtUp.then(() => prefetchWindows(prefetch, signal)).catch(onFatal);
  return {
    routes: [
      verifyEndpoint(createVerifier({ evaluator, search, cache, epoch })),
      symbolsEndpoint({ view, cache, store, markets }),
    ],
    // Symbols without a pill get no window, which would evict another one.
    lastSpreads: (symbol) => (view.get(symbol) === undefined ? [] : cache.windowOf(symbol).last()),
  };
}
