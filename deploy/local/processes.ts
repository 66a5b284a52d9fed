import { existsSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/root.ts';
import type { Engines } from './engines.ts';
import type { Place } from './place.ts';

/** A process of the platform. */
export interface ProcessSpec {
  readonly name: string;
  /** Below `dist`. */
  readonly entry: string;
  readonly args: readonly string[];
  /** Port asked for, of /metrics, /health and /ready. */
  readonly metricsPort: number;
  /** What it serves to others. `key` is its name in stack.json. */
  readonly serves?: {
    readonly key: 'ingest' | 'api' | 'stream';
    readonly port: number;
    readonly scheme: 'http' | 'ws';
  };
  /** Left out with --no-demo. */
  readonly isDemo?: true;
  /** Told to it beside what all are told. */
  readonly settings?: Readonly<Record<string, string>>;
}

const pipelines = 'pipelines/main.js';

/** As `npm start` runs them on one machine, in the order in which they are started and listed. */
export const PROCESSES: readonly ProcessSpec[] = [
  {
    ...{ name: 'ingest', entry: 'gateway/ingest/main.js', args: [], metricsPort: 9101 },
    serves: { key: 'ingest', port: 8081, scheme: 'http' },
  },
  { name: 'latest', entry: pipelines, args: ['latest'], metricsPort: 9102 },
  { name: 'analytics', entry: pipelines, args: ['analytics'], metricsPort: 9103 },
  {
    ...{ name: 'api', entry: 'gateway/api/main.js', args: [], metricsPort: 9104 },
    serves: { key: 'api', port: 8080, scheme: 'http' },
  },
  {
    ...{ name: 'stream', entry: 'gateway/stream/main.js', args: [], metricsPort: 9105 },
    serves: { key: 'stream', port: 8082, scheme: 'ws' },
  },
  { name: 'dedicated', entry: 'gateway/dedicated/main.js', args: [], metricsPort: 9107 },
  { name: 'webhooks', entry: pipelines, args: ['webhooks'], metricsPort: 9108 },
  {
    ...{ name: 'demo', entry: 'generator/demo/main.js', args: [], metricsPort: 9106 },
    isDemo: true,
  },
];

/** A process with its ports chosen. */
export interface PlacedProcess {
  readonly spec: ProcessSpec;
  readonly metricsPort: number;
  /** `http://…` or `ws://…` of what it serves. */
  readonly url?: string;
  readonly port?: number;
}

/** Absolute path of the compiled entry. */
export function entryOf(spec: ProcessSpec): string {
  return path.join(packageRoot, 'dist', spec.entry);
}

/** How the demo market is to be. */
export interface DemoMarket {
  readonly pillsPerS: number;
  readonly seed: number;
  /** Avro to the log, past the gateway. */
  readonly isDirect: boolean;
}

/** What is started; undefined = without the demo market. @throws Error when the build is not there. */
export function wantedProcesses(demo: DemoMarket | undefined): ProcessSpec[] {
  const wanted = PROCESSES.flatMap((spec) => {
    if (spec.isDemo !== true) return [spec];
    return demo === undefined ? [] : [{ ...spec, settings: demoSettings(demo) }];
  });
  const missing = wanted.find((spec) => !existsSync(entryOf(spec)));
  if (missing === undefined) return wanted;
  throw new Error(`dist/${missing.entry} is not built; run: npm run build`);
}

function demoSettings({ pillsPerS, seed, isDirect }: DemoMarket): Record<string, string> {
  return {
    DEMO_PILLS_PER_S: String(pillsPerS),
    DEMO_SEED: String(seed),
    DEMO_WAY: isDirect ? 'direct' : 'http',
  };
}

/** Where the engines are, and the namespace in them. */
export interface Addresses
  extends Pick<Engines, 'kafkaBrokers' | 'registryUrl' | 'clickhouseUrl' | 'postgresUrl'> {
  readonly namespace: string;
  /** For new dedicated sockets: `from-to`. */
  readonly dedicatedPorts?: string;
  /** Whose market the page shows to everybody. */
  readonly demoAccountId?: string | undefined;
}

/** Where the platform serves, by the name in stack.json. */
export type ServedUrls = Partial<Readonly<Record<'ingest' | 'api' | 'stream', string>>>;

/** Everything a process is told; each reads the part it needs. */
export function environmentOf(
  placed: PlacedProcess,
  addresses: Addresses,
  place: Pick<Place, 'pepper' | 'outbox' | 'run'>,
  urls: ServedUrls,
): Record<string, string> {
  const { spec, port } = placed;
  const prefix = spec.serves?.key.toUpperCase();
  return {
    KAFKA_BROKERS: addresses.kafkaBrokers,
    SCHEMA_REGISTRY_URL: addresses.registryUrl,
    CLICKHOUSE_URL: addresses.clickhouseUrl,
    DATABASE_URL: addresses.postgresUrl,
    PILLOLE_NAMESPACE: addresses.namespace,
    KEY_PEPPER_FILE: place.pepper,
    MAIL_OUTBOX: place.outbox,
    // A developer's own receiver; elsewhere only public addresses are posted to.
    WEBHOOK_ALLOW_LOOPBACK: 'true',
    DEDICATED_RUN_FOLDER: path.join(place.run, 'dedicated'),
    ...(addresses.dedicatedPorts === undefined
      ? {}
      : { DEDICATED_PORTS: addresses.dedicatedPorts }),
    ...(addresses.demoAccountId === undefined ? {} : { DEMO_ACCOUNT_ID: addresses.demoAccountId }),
    ...spec.settings,
    METRICS_HOST: '127.0.0.1',
    METRICS_PORT: String(placed.metricsPort),
    ...(prefix === undefined || port === undefined
      ? {}
      : { [`${prefix}_HOST`]: '127.0.0.1', [`${prefix}_PORT`]: String(port) }),
    ...(urls.ingest === undefined ? {} : { INGEST_URL: urls.ingest }),
    ...(urls.stream === undefined ? {} : { STREAM_URL: urls.stream }),
    ...(urls.api === undefined ? {} : { PUBLIC_URL: urls.api }),
  };
}
