import type { RouteOptions } from 'fastify';
import { openOverridesFile } from '../../../lib/calendar/overrides-file.ts';
import { createVenueOf, type VenueRules } from '../../../lib/calendar/venue-rules.ts';
import { databaseName, openClickHouse } from '../../../lib/clickhouse.ts';
import { nowMicros } from '../../../lib/clock.ts';
import type { KafkaClient } from '../../../lib/kafka/client.ts';
import type { Life } from '../../../lib/run.ts';
import { openMarkets } from '../../../lib/signal/open-markets.ts';
import type { TopicSettings } from '../../../schemas/avro.ts';
import type { SchemaClient } from '../../../schemas/registry.ts';
import type { Progress } from '../progress.ts';
import type { LatestView } from '../view.ts';
import { createAnswers } from './answers.ts';
import { createFinder } from './finder.ts';
import { createHearing } from './hearing.ts';
import { keepWarm } from './keep-warm.ts';
import { VERIFY_LIMITS } from './limits.ts';
import { openLogMemory } from './log-memory.ts';
import { openStore } from './store.ts';
import { symbolsEndpoint } from './symbols-route.ts';
import { verifyEndpoint } from './verify-route.ts';
import { createWeigher } from './weigher.ts';

export interface VerifyOptions {
  readonly client: KafkaClient;
  readonly schemas: SchemaClient;
  readonly namespace: string;
  readonly settings: TopicSettings;
  readonly clickhouseUrl: string;
  /** Days that are not as the calendars have them, see lib/calendar/overrides-file.ts. */
  readonly overridesPath: string | undefined;
  readonly venueRules: VenueRules;
  readonly view: LatestView;
  readonly progress: () => Progress;
}

const LOOK_MS = 250;
const WARM_AGAIN_MS = 5_000;

/**
 * Opens what verdicts rest on, and makes the routes: `GET /api/market/verify`, `GET /api/symbols`.
 * The process is ready when the memory has caught up with the log; ClickHouse may be away.
 * @throws when the log cannot be read, or the overrides cannot.
 */
export async function openVerify(options: VerifyOptions, life: Life): Promise<RouteOptions[]> {
  const { client, schemas, namespace, settings, view } = options;
  const { log, signal } = life;
  const { epoch } = settings;
  const nowMs = () => nowMicros() / 1000;
  // First these two, since they alone can fail and are tried again: nothing else is open yet.
  const overrides = openOverridesFile(options.overridesPath, log);
  const memory = await openLogMemory({
    ...{ client, schemas, namespace, settings, log, signal, nowMs, onFatal: life.fail },
  });
  life.onStop('verify memory', memory.close);
  const markets = openMarkets(overrides, createVenueOf(options.venueRules), life);
  const clickhouse = openClickHouse({
    ...{ url: options.clickhouseUrl, database: databaseName(namespace) },
    requestTimeoutMs: VERIFY_LIMITS.statementMs,
    connectionsMax: VERIFY_LIMITS.statementsMax,
  });
  life.onStop('verify history', () => clickhouse.close());
  const store = openStore({ clickhouse, epoch, log });
  let isCaughtUp = false;
  memory.caughtUp.then(() => {
    isCaughtUp = true;
  }, life.fail);
  life.readyWhen(() => (isCaughtUp ? undefined : 'reading the newest pills'));
  const hearing = createHearing(
    {
      isCaughtUp: () => isCaughtUp && view.isReady(),
      isConnected: () => memory.isConnected() && view.isConnected(),
      processor: () => options.progress().state,
    },
    nowMs,
  );
  const timer = setInterval(hearing.look, LOOK_MS);
  life.onStop('verify timer', () => clearInterval(timer));
  const weigher = createWeigher({ view, memory, store, markets, hearing, nowMicros });
  const finder = createFinder({ memory, store, view, epoch });
  const warmth = { weigher, view, againMs: WARM_AGAIN_MS };
  memory.caughtUp.then(() => keepWarm(warmth, signal)).catch(life.fail);
  return [
    verifyEndpoint(createAnswers({ weigher, finder, memory, epoch })),
    symbolsEndpoint({ view, memory, store, markets }),
  ];
}
