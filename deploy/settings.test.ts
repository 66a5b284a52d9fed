import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { DISABLE_AFTER_S } from '../domain/webhooks/deliveries/retry-schedule.ts';
import { readApiConfig } from '../gateway/api/config.ts';
import { readDedicatedConfig } from '../gateway/dedicated/config.ts';
import { readIngestConfig } from '../gateway/ingest/config.ts';
import { readStreamConfig } from '../gateway/stream/config.ts';
import { readCanaryConfig } from '../generator/canary/config.ts';
import { readDemoConfig } from '../generator/demo/config.ts';
import { REQUEST_TIMEOUT_MS } from '../lib/clickhouse/clickhouse-client.ts';
import { ConfigError } from '../lib/config/config.ts';
import type { ProcessName } from '../lib/config/setting.ts';
import { SETTING_NAMES, settingOf, settingsOf } from '../lib/config/settings/catalogue.ts';
import { unknownSettings } from '../lib/config/unknown-settings.ts';
import { packageRoot } from '../lib/files/package-root.ts';
import { readPipelineConfig } from '../pipelines/config.ts';
import { readDestinationsConfig } from '../pipelines/destinations/config.ts';
import { readWebhooksConfig } from '../pipelines/webhooks/config.ts';
import { readAdminConfig } from './admin/config.ts';
import { readClickhouseConfig } from './local/clickhouse-server/config.ts';
import { readLauncherConfig } from './local/config.ts';
import { readProvisionConfig } from './provision-config.ts';

type Env = Readonly<Record<string, string>>;

/** `rebuild` reads its settings in its main, which is run below. */
const READERS: Readonly<
  Record<Exclude<ProcessName, 'rebuild'>, (env: NodeJS.ProcessEnv) => unknown>
> = {
  ingest: readIngestConfig,
  api: readApiConfig,
  stream: readStreamConfig,
  dedicated: readDedicatedConfig,
  latest: (env) => readPipelineConfig(env, false),
  analytics: (env) => readPipelineConfig(env, true),
  webhooks: readWebhooksConfig,
  destinations: readDestinationsConfig,
  demo: readDemoConfig,
  canary: readCanaryConfig,
  provision: readProvisionConfig,
  admin: readAdminConfig,
  start: readLauncherConfig,
  clickhouse: readClickhouseConfig,
};

const MAINS: Readonly<Record<ProcessName, readonly string[]>> = {
  ingest: ['gateway/ingest/main.js'],
  api: ['gateway/api/main.js'],
  stream: ['gateway/stream/main.js'],
  dedicated: ['gateway/dedicated/main.js'],
  latest: ['pipelines/main.js', 'latest'],
  analytics: ['pipelines/main.js', 'analytics'],
  webhooks: ['pipelines/main.js', 'webhooks'],
  destinations: ['pipelines/main.js', 'destinations'],
  demo: ['generator/demo/main.js'],
  canary: ['generator/canary/main.js'],
  provision: ['deploy/provision-main.js'],
  rebuild: ['pipelines/analytics/rebuild-main.js'],
  admin: ['deploy/admin/main.js'],
  start: ['deploy/local/main.js'],
  clickhouse: ['deploy/local/clickhouse-server/main.js'],
};

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-settings-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string) => {
  const made = path.join(folder, name);
  writeFileSync(made, text);
  return made;
};
const PEPPER = file('pepper', 'ab'.repeat(32));

/** The message of the refusal; empty if the settings are accepted. */
function refusal(read: (env: NodeJS.ProcessEnv) => unknown, env: Env): string {
  try {
    read(env);
    return '';
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message;
  }
}

/** Names of the settings that a process reads. */
function readBy(read: (env: NodeJS.ProcessEnv) => unknown, env: Env): Set<string> {
  const names = new Set<string>();
  const recording = new Proxy<NodeJS.ProcessEnv>(
    { ...env },
    {
      get(target, name: string) {
        names.add(name);
        return target[name];
      },
    },
  );
  refusal(() => read(recording), {});
  return new Set(SETTING_NAMES.filter((name) => names.has(name)));
}

async function run(name: ProcessName, args: readonly string[], env: Env = {}) {
  const [entry, ...rest] = MAINS[name];
  const argv = [path.join(packageRoot, 'dist', entry!), ...rest, ...args];
  const options = { env: { PATH: process.env.PATH, ...env }, cwd: folder };
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, argv, options);
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

const names = Object.keys(READERS) as (keyof typeof READERS)[];

describe('the catalogue', () => {
  test.each(names)('%s reads the settings that it declares, and no others', (name) => {
    const env: Env = name === 'stream' ? { DEDICATED_NAME: 'ded_a' } : {};
    expect([...readBy(READERS[name], env)].sort()).toEqual([...settingsOf(name)].sort());
  });

  test.each(names)('%s names every missing setting at once', (name) => {
    const message = refusal(READERS[name], {});
    const missing = SETTING_NAMES.filter((one) => message.includes(`${one} is not set (`));
    const required = SETTING_NAMES.filter((one) => settingOf(one).requiredBy?.includes(name));
    expect(missing).toEqual(required);
  });

  test('faults of all kinds are told at once, and no secret is repeated', () => {
    const message = refusal(readApiConfig, {
      KAFKA_TLS: 'true',
      KAFKA_PASSWORD: 'hush-1',
      METRICS_PORT: '70000',
      API_HOST: '0.0.0.0',
      DATABASE_URL: 'mysql://me:hush-2@db/x',
      CLICKHOUSE_URL: 'http://me:hush-3@db?sslrootcert=/none',
      KEY_PEPPER_FILE: '/none',
      VENUE_RULES: '/none',
      CALENDAR_OVERRIDES: '/none',
      TRUSTED_PROXIES: 'proxy.example',
      WEBHOOK_PORTS: '0',
      WEBHOOK_DNS_SERVERS: 'x',
      WEBHOOK_EGRESS_PROXY: 'socks5://u:hush-4@p',
      WEBHOOK_REFUSED_PORTS: 'x',
      DEDICATED_PORTS: '9-8',
      ALERT_WEBHOOK_URL: 'hush-5',
      SECURITY_CONTACT: 'x',
      STREAM_ORIGINS: '*',
    });
    for (const part of [
      'KAFKA_BROKERS is not set',
      'SCHEMA_REGISTRY_URL is not set',
      'KAFKA_TLS must be one of yes, no, not "true"',
      'KAFKA_USERNAME or KAFKA_PASSWORD without a KAFKA_SASL_MECHANISM',
      'METRICS_PORT must be a whole number from 0 to 65535, not "70000"',
      'API_HOST 0.0.0.0 is reachable',
      'DATABASE_URL must be a URL with postgres://',
      'CLICKHOUSE_URL: sslrootcert without TLS',
      'CLICKHOUSE_URL: sslrootcert /none cannot be read (ENOENT)',
      'KEY_PEPPER_FILE /none cannot be read',
      'VENUE_RULES /none cannot be read',
      'CALENDAR_OVERRIDES /none cannot be read',
      'TRUSTED_PROXIES: "proxy.example" must be',
      'WEBHOOK_PORTS must be ports',
      'WEBHOOK_DNS_SERVERS must be addresses',
      'WEBHOOK_EGRESS_PROXY must be a URL',
      'WEBHOOK_REFUSED_PORTS must be ports or ranges',
      'DEDICATED_PORTS must be two ports',
      'ALERT_WEBHOOK_URL must be an http or https address',
      'SECURITY_CONTACT must be a mailto:',
      'STREAM_ORIGINS must list origins',
    ]) {
      expect(message).toContain(part);
    }
    expect(message).not.toContain('hush');
  });

  test('defaults that other rules rest on', () => {
    expect(settingOf('WEBHOOK_DISABLE_AFTER_S').fallback).toBe(DISABLE_AFTER_S);
    // Longer than the sink's time-out of one request, or an insert in flight could be lost.
    expect(settingOf('REBUILD_SETTLE_MS').fallback).toBeGreaterThan(REQUEST_TIMEOUT_MS);
  });
});

describe('what secures Kafka', () => {
  const PEM = file('ca.pem', '-----BEGIN CERTIFICATE-----\n');
  const env = (more: Env): Env => ({
    KAFKA_BROKERS: 'kafka-1:9093',
    SCHEMA_REGISTRY_URL: 'http://x',
    ...more,
  });
  const read = (given: NodeJS.ProcessEnv) => readPipelineConfig(given, false);
  const USER = { KAFKA_USERNAME: 'latest', KAFKA_PASSWORD: 'hush' };

  test('is read from the settings', () => {
    const given = { KAFKA_TLS: 'yes', KAFKA_CA_FILE: PEM, KAFKA_SASL_MECHANISM: 'scram-sha-512' };
    expect(read(env({ ...given, ...USER })).kafka).toEqual({
      brokers: ['kafka-1:9093'],
      tls: { ca: '-----BEGIN CERTIFICATE-----\n' },
      sasl: { mechanism: 'scram-sha-512', username: 'latest', password: 'hush' },
    });
    expect(read(env({})).kafka).toEqual({ brokers: ['kafka-1:9093'] });
  });

  test.each<[string, Env, string]>([
    ['a CA without TLS', { KAFKA_CA_FILE: PEM }, 'KAFKA_CA_FILE without TLS: set KAFKA_TLS=yes'],
    ['no CA file', { KAFKA_TLS: 'yes', KAFKA_CA_FILE: '/none' }, 'cannot be read (ENOENT)'],
    ['no PEM', { KAFKA_TLS: 'yes', KAFKA_CA_FILE: PEPPER }, 'is not a PEM file'],
    ['a certificate without key', { KAFKA_TLS: 'yes', KAFKA_CERTIFICATE_FILE: PEM }, 'set both'],
    ['no password', { KAFKA_SASL_MECHANISM: 'plain', KAFKA_USERNAME: 'a' }, 'and KAFKA_PASSWORD'],
    ['a user alone', { KAFKA_USERNAME: 'a' }, 'without a KAFKA_SASL_MECHANISM'],
    ['PLAIN in clear', { KAFKA_SASL_MECHANISM: 'plain', ...USER }, 'password in clear'],
  ])('%s is refused', (_, given, part) => {
    expect(refusal(read, env(given))).toContain(part);
    expect(refusal(read, env(given))).not.toContain('hush');
  });

  test('PLAIN in clear is accepted on this machine', () => {
    const given = { KAFKA_BROKERS: '127.0.0.1:9092,localhost:9093', KAFKA_SASL_MECHANISM: 'plain' };
    expect(refusal(read, env({ ...given, ...USER }))).toBe('');
  });
});

test.each(['require', 'prefer', 'verify-ca', 'no-verify'])(
  'sslmode=%s, which does not verify the server, is refused',
  (mode) => {
    const DATABASE_URL = `postgres://me:hush@db/x?sslmode=${mode}`;
    const message = refusal(readAdminConfig, { DATABASE_URL });
    expect(message).toContain(`DATABASE_URL: sslmode=${mode} does not verify the server`);
    expect(message).not.toContain('hush');
  },
);

test.each(['ssl=no-verify', 'sslmode=verify-full&sslmode=disable'])(
  'a database address with %s, which the driver would read otherwise, is refused',
  (query) => {
    const DATABASE_URL = `postgres://me:hush@db/x?${query}`;
    const message = refusal(readAdminConfig, { DATABASE_URL });
    expect(message).toContain('DATABASE_URL: say how TLS is used by one sslmode, without ssl');
  },
);

test('a password that is not percent-encoded is refused', () => {
  const message = refusal(readAdminConfig, { DATABASE_URL: 'postgres://me:hush%@db/x' });
  expect(message).toBe('DATABASE_URL: percent-encode user and password, e.g. % as %25.');
});

describe('unknown variables', () => {
  test.each([
    ['INGETS_PORT', 'INGEST_PORT was probably meant'],
    ['LOGLEVEL', 'LOG_LEVEL was probably meant'],
    ['kafka_brokers', 'KAFKA_BROKERS was probably meant'],
    ['DATABASE_URL_FIEL', 'DATABASE_URL_FILE was probably meant'],
    ['INGEST_CREDENTIALS_FIL', 'INGEST_CREDENTIALS_FILE was probably meant'],
    ['WEBHOOK_COLOUR', 'see docs/settings.md'],
  ])('%s is warned of: %s', (name, hint) => {
    const warnings = unknownSettings({ [name]: 'hush', PATH: '/bin' });
    expect(warnings).toEqual([
      expect.stringMatching(`^${name} is no setting of pillole .*${hint}$`),
    ]);
  });

  test('settings, their files and the variables of others are not', () => {
    const known = Object.fromEntries(SETTING_NAMES.map((name) => [name, '1']));
    const others = ['PATH', 'HOME', 'NODE_OPTIONS', 'HTTP_PROXY', 'JAVA_OPTS', 'HOSTNAME', 'TERM'];
    const services = ['INGEST_SERVICE_HOST', 'INGEST_PORT_8081_TCP', 'STREAM_SERVICE_PORT'];
    const files = ['DATABASE_URL_FILE', 'KAFKA_PASSWORD_FILE'];
    const env = Object.fromEntries([...others, ...services, ...files].map((name) => [name, '1']));
    expect(unknownSettings({ ...known, ...env })).toEqual([]);
  });

  test('Compose and the chart set no variable that no process knows', () => {
    const ofProcess = /^ {6}([A-Z]\w+):|- \{ ?name: ([A-Z]\w+)|- name: ([A-Z]\w+)|^ {2}([A-Z]\w+):/;
    const files = [
      'deploy/compose/compose.yaml',
      ...readdirSync(path.join(packageRoot, 'deploy/chart/templates'), { encoding: 'utf8' }).map(
        (name) => `deploy/chart/templates/${name}`,
      ),
    ];
    const set = files.flatMap((name) =>
      readFileSync(path.join(packageRoot, name), 'utf8')
        .split('\n')
        .flatMap((line) => ofProcess.exec(line)?.slice(1).filter(Boolean) ?? []),
    );
    const ofEngines =
      /^(?:KAFKA_(?!BROKERS|TLS|CA_|SASL|USER|PASS)|CLUSTER_ID|APICURIO_|POSTGRES_|GF_|CLICKHOUSE_(?:USER|DEFAULT))/;
    const known = new Set<string>([...SETTING_NAMES, 'PILLOLE_DOMAIN']);
    const ours = set.filter((name) => !ofEngines.test(name));
    expect(ours.length).toBeGreaterThan(40);
    expect(ours.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('every program', () => {
  const ALL = Object.keys(MAINS) as ProcessName[];

  test.each(ALL)('%s --help prints its settings', async (name) => {
    const { code, stdout } = await run(name, ['--help']);
    expect(code).toBe(0);
    for (const setting of settingsOf(name)) expect(stdout).toContain(`\n  ${setting}\n`);
  });

  test.each(ALL)('%s --print-config prints values and sources, and no secret', async (name) => {
    const secrets = settingsOf(name).filter((one) => settingOf(one).isSecret === true);
    const env: Record<string, string> = Object.fromEntries(
      secrets.map((one) => [`${one}_FILE`, file(`${name}-${one}`, 'https://u:hush@host/x')]),
    );
    env.KAFKA_BROKERS = 'kafka-1:9092';
    env.INGEST_URL = 'https://me:hush@ingest.example';
    const { code, stdout, stderr } = await run(name, ['--print-config'], env);
    expect([0, 2]).toContain(code);
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => line.split(' = ')[0])).toEqual([...settingsOf(name)]);
    for (const one of secrets) {
      expect(lines).toContain(`${one} = (secret)  # file ${env[`${one}_FILE`]}`);
    }
    if (settingsOf(name).includes('KAFKA_BROKERS')) {
      expect(lines).toContain('KAFKA_BROKERS = kafka-1:9092  # environment');
      expect(lines).toContain('KAFKA_TLS = no  # default');
    }
    expect(stdout + stderr).not.toContain('hush');
  });

  test('--print-config says what is wrong, and a start names it too', async () => {
    const env = { KAFKA_BROKERS: 'kafka-1:9092', INGETS_PORT: '1' };
    const printed = await run('latest', ['--print-config'], env);
    expect(printed.code).toBe(2);
    expect(printed.stderr).toContain('latest cannot start: SCHEMA_REGISTRY_URL is not set');
    const started = await run('latest', [], env);
    expect(started.code).toBe(2);
    expect(started.stderr).toContain('SCHEMA_REGISTRY_URL is not set');
  });
});
