import { existsSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';
import type { PostgresRole } from '../../lib/postgres/roles.ts';
import type { Engines } from './engines.ts';
import type { StackLayout } from './stack-layout.ts';

/** A process of the platform. */
export interface ProcessSpec {
  readonly name: string;
  /** Path below `dist`. */
  readonly entry: string;
  readonly args: readonly string[];
  /** Preferred port of /metrics, /health and /ready. */
  readonly metricsPort: number;
  /** The public address; `key` is its name in stack.json. */
  readonly serves?: {
    readonly key: 'ingest' | 'api' | 'stream';
    readonly port: number;
    readonly scheme: 'http' | 'ws';
  };
  /** The role as which it uses PostgreSQL; a process without one gets no address. */
  readonly postgres?: PostgresRole;
  readonly usesClickhouse?: true;
  /** Omitted with --no-demo. */
  readonly isDemo?: true;
  /** Only with --canary. */
  readonly isCanary?: true;
  /** Added to the environment that all processes share. */
  readonly settings?: Readonly<Record<string, string>>;
}

const PIPELINES = 'pipelines/main.js';

/** The processes that `npm start` runs, in the order in which they are started and listed. */
export const PROCESSES: readonly ProcessSpec[] = [
  {
    name: 'ingest',
    entry: 'gateway/ingest/main.js',
    args: [],
    metricsPort: 9101,
    serves: { key: 'ingest', port: 8081, scheme: 'http' },
  },
  { name: 'latest', entry: PIPELINES, args: ['latest'], metricsPort: 9102 },
  {
    name: 'analytics',
    entry: PIPELINES,
    args: ['analytics'],
    metricsPort: 9103,
    usesClickhouse: true,
  },
  {
    name: 'api',
    entry: 'gateway/api/main.js',
    args: [],
    postgres: 'api',
    usesClickhouse: true,
    metricsPort: 9104,
    serves: { key: 'api', port: 8080, scheme: 'http' },
  },
  {
    name: 'stream',
    entry: 'gateway/stream/main.js',
    args: [],
    postgres: 'stream',
    metricsPort: 9105,
    serves: { key: 'stream', port: 8082, scheme: 'ws' },
  },
  {
    name: 'dedicated',
    entry: 'gateway/dedicated/main.js',
    args: [],
    metricsPort: 9107,
    postgres: 'dedicated',
  },
  {
    name: 'webhooks',
    entry: PIPELINES,
    args: ['webhooks'],
    metricsPort: 9108,
    postgres: 'webhooks',
    usesClickhouse: true,
  },
  {
    name: 'destinations',
    entry: PIPELINES,
    args: ['destinations'],
    metricsPort: 9110,
    postgres: 'destinations',
  },
  {
    name: 'demo',
    entry: 'generator/demo/main.js',
    args: [],
    metricsPort: 9106,
    isDemo: true,
  },
  {
    name: 'canary',
    entry: 'generator/canary/main.js',
    args: [],
    metricsPort: 9109,
    isCanary: true,
    settings: { CANARY_WEBHOOK: 'yes' },
  },
];

/** A process with its allocated ports. */
export interface ProcessInstance {
  readonly spec: ProcessSpec;
  readonly metricsPort: number;
  /** The public address: `http://…` or `ws://…`. */
  readonly url?: string;
  readonly port?: number;
}

/** Absolute path of the compiled entry. */
export function entryOf(spec: ProcessSpec): string {
  return path.join(packageRoot, 'dist', spec.entry);
}

/** Settings of the demo market. */
export interface DemoMarket {
  readonly pillsPerS: number;
  readonly seed: number;
  /** Writes Avro to the log, past the gateway. */
  readonly isDirect: boolean;
}

/** Selects the processes to start; undefined = no demo market. @throws Error without a build */
export function selectProcesses(demo: DemoMarket | undefined, hasCanary: boolean): ProcessSpec[] {
  const selected = PROCESSES.flatMap((spec) => {
    if (spec.isCanary === true && !hasCanary) return [];
    if (spec.isDemo !== true) return [spec];
    return demo === undefined ? [] : [{ ...spec, settings: demoSettings(demo) }];
  });
  const missing = selected.find((spec) => !existsSync(entryOf(spec)));
  if (missing === undefined) return selected;
  throw new Error(`dist/${missing.entry} is not built; run: npm run build`);
}

function demoSettings({ pillsPerS, seed, isDirect }: DemoMarket): Record<string, string> {
  return {
    DEMO_PILLS_PER_S: String(pillsPerS),
    DEMO_SEED: String(seed),
    DEMO_WAY: isDirect ? 'direct' : 'http',
  };
}

/** Addresses and settings that the processes share. */
export interface Addresses
  extends Pick<Engines, 'kafkaBrokers' | 'registryUrl' | 'clickhouseUrl' | 'postgresUrls'> {
  readonly namespace: string;
  /** Ports of new dedicated sockets: `from-to`. */
  readonly dedicatedPorts?: string;
  /** The account whose market the page shows to everybody. */
  readonly demoAccountId?: string | undefined;
}

/** Public addresses by their name in stack.json. */
export type ServedUrls = Partial<Readonly<Record<'ingest' | 'api' | 'stream', string>>>;

/** The environment of a process; each process reads the variables it needs. */
export function environmentOf(
  instance: ProcessInstance,
  addresses: Addresses,
  layout: Pick<StackLayout, 'pepper' | 'outbox' | 'exports' | 'run' | 'canaryKey'>,
  urls: ServedUrls,
): Record<string, string> {
  const { spec, metricsPort, port } = instance;
  const prefix = spec.serves?.key.toUpperCase();
  const variables: Readonly<Record<string, string | undefined>> = {
    KAFKA_BROKERS: addresses.kafkaBrokers,
    SCHEMA_REGISTRY_URL: addresses.registryUrl,
    CLICKHOUSE_URL: spec.usesClickhouse === true ? addresses.clickhouseUrl : undefined,
    DATABASE_URL: spec.postgres === undefined ? undefined : addresses.postgresUrls[spec.postgres],
    PILLOLE_NAMESPACE: addresses.namespace,
    KEY_PEPPER_FILE: layout.pepper,
    MAIL_OUTBOX: layout.outbox,
    EXPORTS_FOLDER: layout.exports,
    // For a developer's own receiver; other deployments post to public addresses only.
    WEBHOOK_ALLOW_LOOPBACK: 'true',
    DEDICATED_RUN_FOLDER: path.join(layout.run, 'dedicated'),
    DEDICATED_PORTS: addresses.dedicatedPorts,
    DEMO_ACCOUNT_ID: addresses.demoAccountId,
    ...spec.settings,
    CANARY_KEY_FILE: spec.isCanary === true ? layout.canaryKey : undefined,
    METRICS_HOST: '127.0.0.1',
    METRICS_PORT: String(metricsPort),
    ...(prefix === undefined || port === undefined
      ? {}
      : { [`${prefix}_HOST`]: '127.0.0.1', [`${prefix}_PORT`]: String(port) }),
    INGEST_URL: urls.ingest,
    STREAM_URL: urls.stream,
    PUBLIC_URL: urls.api,
  };
  const isSet = (entry: [string, string | undefined]): entry is [string, string] =>
    entry[1] !== undefined;
  return Object.fromEntries(Object.entries(variables).filter(isSet));
}
