import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readPepper } from '../../domain/access/pepper.ts';
import { readApiConfig } from '../../gateway/api/config.ts';
import { readDedicatedConfig } from '../../gateway/dedicated/config.ts';
import { readIngestConfig } from '../../gateway/ingest/config.ts';
import { readStreamConfig } from '../../gateway/stream/config.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { POSTGRES_ROLES } from '../../lib/postgres/roles.ts';
import { readPipelineConfig } from '../../pipelines/config.ts';
import { readDestinationsConfig } from '../../pipelines/destinations/config.ts';
import { readWebhooksConfig } from '../../pipelines/webhooks/config.ts';
import { readRecipe } from '../image/dockerfile.ts';
import { PROCESSES } from '../local/processes.ts';
import { readProvisionConfig } from '../provision-config.ts';

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly profiles?: readonly string[];
  readonly networks?: unknown;
  readonly read_only?: boolean;
  readonly volumes?: readonly string[];
}

const HERE = path.join(packageRoot, 'deploy/compose');
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-compose-'));
cpSync(HERE, folder, { recursive: true });
execFileSync('sh', [path.join(folder, 'secrets.sh')]);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const made = variablesOf('.env');
const compose = load(made);
const { services } = compose;

const READERS: Readonly<Record<string, (env: NodeJS.ProcessEnv) => unknown>> = {
  'dist/gateway/ingest/main.js': readIngestConfig,
  'dist/gateway/api/main.js': readApiConfig,
  'dist/gateway/stream/main.js': readStreamConfig,
  'dist/gateway/dedicated/main.js': readDedicatedConfig,
  'dist/pipelines/main.js latest': (env) => readPipelineConfig(env, false),
  'dist/pipelines/main.js analytics': (env) => readPipelineConfig(env, true),
  'dist/pipelines/main.js webhooks': readWebhooksConfig,
  'dist/pipelines/main.js destinations': readDestinationsConfig,
  'dist/deploy/provision-main.js': readProvisionConfig,
};
const ours = Object.entries(services).filter(([, one]) => one.image.startsWith('pillole:'));
const commandOf = (service: Service) => service.command?.join(' ') ?? '';

/** The environment as the process sees it; what is mounted at /run/secrets is in the test's folder. */
function environmentOf(service: Service): Record<string, string> {
  const entries = Object.entries(service.environment ?? {});
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name,
      value.replace('/run/secrets', path.join(folder, 'secrets')),
    ]),
  );
}

describe('compose.yaml', () => {
  test('is valid by the schema of the compose specification', () => {
    const schema = JSON.parse(readFileSync(path.join(HERE, 'schema/compose-spec.json'), 'utf8'));
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
    expect([validate(compose), validate.errors]).toEqual([true, null]);
    expect(validate({ services: { api: { imagee: 'x' } } })).toBe(false);
  });

  test('runs every process of the platform, and the migrations', () => {
    // The canary needs an account of its own, which the operator makes.
    const wanted = PROCESSES.filter((one) => !one.isDemo && !one.isCanary).map((one) =>
      [`dist/${one.entry}`, ...one.args].join(' '),
    );
    expect(ours.map(([, one]) => commandOf(one)).sort()).toEqual(
      [...wanted, 'dist/deploy/provision-main.js'].sort(),
    );
  });

  test.each(ours)('gives %s an environment that its own reader accepts', (_, service) => {
    const read = READERS[commandOf(service)]!;
    const env = environmentOf(service);
    read(env);
    readPepper(env.KEY_PEPPER_FILE!);
    // The reader is what accepts it: without the brokers, it refuses.
    expect(() => read({ ...env, KAFKA_BROKERS: '' })).toThrow('KAFKA_BROKERS is not set');
  });

  test('gives the API a volume for exports, on a folder that nobody of the image may write', () => {
    const { exportsFolder } = readApiConfig(environmentOf(services.api!));
    expect(services.api!.volumes).toEqual([`exports:${exportsFolder}`]);
    expect(compose.volumes).toHaveProperty('exports');
    const base = readFileSync(path.join(packageRoot, 'deploy/image/base.sh'), 'utf8');
    expect(base).toMatch(new RegExp(`^chmod 1777 .*"\\$target${exportsFolder}"$`, 'm'));
  });

  test('opens nothing: generators need credentials, and no tier is free', () => {
    expect(readIngestConfig(environmentOf(services.ingest!)).open.join()).not.toContain('pills');
    const { open, canBuy } = readApiConfig(environmentOf(services.api!));
    expect([canBuy, open.join()]).toEqual([false, expect.not.stringContaining('tier')]);
  });

  test('pins every image by a tag with a version, and makes the root of ours read-only', () => {
    for (const { image } of Object.values(services)) expect(image).toMatch(/:v?\d+\.\d+/);
    for (const [, one] of ours) expect(one.read_only).toBe(true);
  });

  test('uses, for each process, the role and the password that secrets.sh gives it', () => {
    const sql = readFileSync(path.join(folder, 'secrets/passwords.sql'), 'utf8');
    const given = [...sql.matchAll(/ALTER ROLE pillole_(\w+) PASSWORD '(\w+)'/g)];
    expect(given.map(([, role]) => role).sort()).toEqual([...POSTGRES_ROLES].sort());
    for (const [name, service] of ours) {
      const url = service.environment?.DATABASE_URL;
      if (url === undefined) continue;
      const { username, password } = new URL(url);
      const role = name === 'provision' ? 'migrate' : name;
      expect([username, password]).toEqual([
        `pillole_${role}`,
        given.find(([, one]) => one === role)?.[2],
      ]);
    }
  });

  test('leads the four public addresses, Prometheus and the health check to the ports of the processes', () => {
    const caddy = readFileSync(path.join(folder, 'Caddyfile'), 'utf8');
    for (const [name, setting] of [
      ['api', 'PUBLIC_URL'],
      ['ingest', 'INGEST_URL'],
      ['stream', 'STREAM_URL'],
    ] as const) {
      const { environment = {} } = services[name]!;
      expect(caddy).toContain(`${name}:${environment[`${name.toUpperCase()}_PORT`]}}`);
      expect(new URL(environment[setting]!).hostname).toBe(`${name}.pillole.localhost`);
      expect(caddy).toContain(`${name}.{$PILLOLE_DOMAIN:pillole.localhost} {`);
    }
    expect(caddy).toContain('dedicated.{$PILLOLE_DOMAIN:pillole.localhost} {');
    expect(readApiConfig(environmentOf(services.api!)).dedicated).toMatchObject({
      ports: { from: 8301, to: 8400 },
      url: 'wss://dedicated.pillole.localhost/{port}',
    });
    const scrape = parse(readFileSync(path.join(folder, 'prometheus.yml'), 'utf8'));
    const [{ names, port }] = scrape.scrape_configs[0].dns_sd_configs;
    const served = ours.map(([name]) => name).filter((name) => name !== 'provision');
    expect([...names].sort()).toEqual(served.sort());
    for (const [, one] of ours) expect(one.environment?.METRICS_PORT).toBe(String(port));
    expect(readRecipe().env.METRICS_PORT).toBe(String(port));
  });

  test('has three brokers in a profile, of which two must hold a pill', () => {
    const cluster = load({ ...made, ...variablesOf('cluster.env') }).services;
    const brokers = Object.entries(cluster).filter(([name]) => name.startsWith('kafka-'));
    const ids = brokers.map(([, one]) => one.environment!.KAFKA_NODE_ID);
    expect(ids).toEqual(['1', '2', '3']);
    for (const [, { environment = {} }] of brokers) {
      const voters = brokers.map(([name], at) => `${ids[at]}@${name}:9093`);
      expect(environment.KAFKA_CONTROLLER_QUORUM_VOTERS).toBe(voters.join());
      expect(environment.KAFKA_DEFAULT_REPLICATION_FACTOR).toBe('3');
      expect(environment.KAFKA_MIN_INSYNC_REPLICAS).toBe('2');
    }
    expect(cluster.ingest!.environment!.KAFKA_BROKERS).toBe(
      brokers.map(([name]) => `${name}:9092`).join(),
    );
    // Without the profile one broker is its own quorum.
    expect(services['kafka-1']!.environment!.KAFKA_CONTROLLER_QUORUM_VOTERS).toBe('1@kafka-1:9093');
    expect([services['kafka-2']!.profiles, services['kafka-3']!.profiles]).toEqual([
      ['cluster'],
      ['cluster'],
    ]);
  });
});

/** Loads the file as compose does: anchors, merges, then variables, of which some are required. */
function load(variables: Readonly<Record<string, string>>): {
  services: Record<string, Service>;
  volumes: object;
} {
  const fill = (text: string) =>
    text.replaceAll(
      /\$\{(\w+):([-?])([^}]*)\}/g,
      (_, name: string, operator: string, rest: string) => {
        const value = variables[name];
        if (value !== undefined && value !== '') return value;
        if (operator === '?') throw new Error(`${name}: ${rest}`);
        return rest;
      },
    );
  const document: unknown = parse(readFileSync(path.join(folder, 'compose.yaml'), 'utf8'), {
    merge: true,
  });
  return JSON.parse(JSON.stringify(document), (_, value: unknown) =>
    typeof value === 'string' ? fill(value) : value,
  );
}

function variablesOf(file: string): Record<string, string> {
  const lines = readFileSync(path.join(folder, file), 'utf8').split('\n');
  const pairs = lines.filter((line) => /^\w+=/.test(line)).map((line) => line.split(/=(.*)/s));
  return Object.fromEntries(pairs.map(([name, value]) => [name, value]));
}
