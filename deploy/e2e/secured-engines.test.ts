import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import pg from 'pg';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { packageRoot } from '../../lib/files/package-root.ts';
import { createKafkaClient, withAdmin } from '../../lib/kafka/kafka-client.ts';
import { silentLog } from '../../lib/log/log.ts';
import { isDatabaseAway, openDatabase } from '../../lib/postgres/database.ts';
import { createClient } from '../../sdk/index.ts';
import { createTestAccount, openTestDatabase } from '../../testing/accounts.ts';
import { makeAuthority } from '../../testing/certificates.ts';
import { startKafkaCluster } from '../../testing/kafka-cluster.ts';
import { newNamespaceName, testEngines } from '../../testing/namespace.ts';
import { makePill } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { createPoster } from '../../testing/poster.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';
import { openTlsProxy } from '../../testing/tls-proxy.ts';
import { waitFor } from '../../testing/wait.ts';
import { readLauncherConfig } from '../local/config.ts';
import { type Engines, startEngines } from '../local/engines.ts';
import { ensurePasswords } from '../local/passwords.ts';
import { stackLayout } from '../local/stack-layout.ts';

type Env = Readonly<Record<string, string>>;

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-secured-'));
const authority = makeAuthority(folder, 'ours');
/** Its certificates are good, but nobody trusts it. */
const stranger = makeAuthority(folder, 'stranger');
/** The certificate names the address, and no name: `localhost` is a wrong host name. */
const server = authority.issue('server', 'IP:127.0.0.1');
const client = authority.issue('client', 'DNS:client');
const PASSWORD = 'hush-kafka';
const REGISTRY_PASSWORD = 'hush-registry%';
const name = newNamespaceName();

const stops: (() => unknown)[] = [];
const processes: TestProcess[] = [];
let env: Env;
let postgres: Engines;
/** Roles see only their own connections. */
let superuserUrl: string;

beforeAll(async () => {
  const engines = testEngines();
  const [kafka, registry, clickhouse] = await Promise.all([
    startKafka(),
    openTlsProxy(engines.registryUrl, server, `pillole:${REGISTRY_PASSWORD}`),
    openTlsProxy(engines.clickhouseUrl, server),
    startPostgres(),
  ]);
  stops.push(registry.close, clickhouse.close);
  const user = `pillole:${encodeURIComponent(REGISTRY_PASSWORD)}@`;
  const { pathname } = new URL(engines.registryUrl);
  const { username, password } = new URL(engines.clickhouseUrl);
  env = {
    PILLOLE_NAMESPACE: name,
    KEY_PEPPER_FILE: engines.pepperFile,
    EXPORTS_FOLDER: path.join(folder, 'exports'),
    LOG_LEVEL: 'debug',
    PILLS_PARTITIONS: '2',
    KAFKA_BROKERS: kafka.brokers.join(),
    KAFKA_TLS: 'yes',
    KAFKA_CA_FILE: authority.ca,
    KAFKA_CERTIFICATE_FILE: client.cert,
    KAFKA_KEY_FILE: client.key,
    KAFKA_SASL_MECHANISM: 'scram-sha-512',
    KAFKA_USERNAME: 'scram-512',
    KAFKA_PASSWORD: PASSWORD,
    SCHEMA_REGISTRY_URL: trusting(registry.url.replace('//', `//${user}`) + pathname),
    CLICKHOUSE_URL: trusting(clickhouse.url.replace('//', `//${username}:${password}@`)),
    DATABASE_URL: verified(postgres.postgresUrl),
  };
});

afterAll(async () => {
  await Promise.all(processes.map((one) => one.kill()));
  for (const stop of stops.reverse()) await stop();
  rmSync(folder, { recursive: true, force: true });
});

const trusting = (url: string, ca = authority.ca) => `${url}?sslrootcert=${encodeURIComponent(ca)}`;
const verified = (url: string, ca = authority.ca) => `${trusting(url, ca)}&sslmode=verify-full`;

/** A broker that asks for a client certificate, and for a password by three mechanisms. */
async function startKafka() {
  const keystore = path.join(folder, 'keystore.pem');
  writeFileSync(keystore, readFileSync(server.key, 'utf8') + readFileSync(server.cert, 'utf8'));
  const login = 'org.apache.kafka.common.security';
  const scram = `${login}.scram.ScramLoginModule required;`;
  const cluster = await startKafkaCluster({
    count: 1,
    secured: {
      settings: {
        'listener.security.protocol.map': 'BROKER:SASL_SSL,CONTROLLER:PLAINTEXT',
        'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
        'sasl.mechanism.inter.broker.protocol': 'PLAIN',
        'listener.name.broker.plain.sasl.jaas.config':
          `${login}.plain.PlainLoginModule required username="broker" password="${PASSWORD}" ` +
          `user_broker="${PASSWORD}" user_plain="${PASSWORD}";`,
        'listener.name.broker.scram-sha-256.sasl.jaas.config': scram,
        'listener.name.broker.scram-sha-512.sasl.jaas.config': scram,
        'ssl.keystore.type': 'PEM',
        'ssl.keystore.location': keystore,
        'ssl.truststore.type': 'PEM',
        'ssl.truststore.location': authority.ca,
        'ssl.client.auth': 'required',
      },
      scram: [
        `SCRAM-SHA-256=[name=scram-256,password=${PASSWORD}]`,
        `SCRAM-SHA-512=[name=scram-512,password=${PASSWORD}]`,
      ],
      isReady: (brokers) =>
        withAdmin(createKafkaClient({ brokers, ...security() }, 'probe', silentLog), (admin) =>
          admin.listTopics().then(() => true),
        ),
    },
  });
  stops.push(cluster.stop);
  return cluster;
}

function security() {
  const pem = (file: string) => readFileSync(file, 'utf8');
  return {
    tls: { ca: pem(authority.ca), cert: pem(client.cert), key: pem(client.key) },
    sasl: { mechanism: 'plain', username: 'plain', password: PASSWORD },
  } as const;
}

/** A server of its own, which speaks TLS from then on. */
async function startPostgres() {
  const layout = stackLayout(path.join(folder, 'stack'));
  mkdirSync(layout.folder, { mode: 0o700 });
  postgres = await startEngines({
    layout,
    config: { ...readLauncherConfig({}), dockerHost: path.join(folder, 'no-docker') },
    names: ['postgres'],
    preferredPorts: { postgres: 0 },
    isTemporary: true,
  });
  stops.push(postgres.stop);
  const url = new URL(postgres.postgresUrl);
  url.username = 'postgres';
  url.password = ensurePasswords(layout.passwords).postgres;
  superuserUrl = url.href;
  const superuser = new pg.Client({ connectionString: superuserUrl });
  await superuser.connect();
  try {
    for (const [setting, source] of [
      ['ssl_cert_file', server.cert],
      ['ssl_key_file', server.key],
    ] as const) {
      // Beside the data, where the user of the server may read.
      const copy = path.join(layout.data('postgres'), path.basename(source));
      copyFileSync(source, copy);
      await superuser.query(`ALTER SYSTEM SET ${setting} = ${pg.escapeLiteral(copy)}`);
    }
    await superuser.query('ALTER SYSTEM SET ssl = on');
    await superuser.query('SELECT pg_reload_conf()');
    await waitFor('TLS', async () => {
      const { rows } = await superuser.query('SHOW ssl');
      return rows[0].ssl === 'on';
    });
  } finally {
    await superuser.end();
  }
}

async function provision(more: Env = {}) {
  const main = path.join(packageRoot, 'dist/deploy/provision-main.js');
  const options = { env: { PATH: process.env.PATH, ...env, ...more } };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [main], options);
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

async function start(entry: string, args: readonly string[], more: Env): Promise<TestProcess> {
  const started = await startProcess(entry, args, { ...env, ...more });
  processes.push(started);
  return started;
}

/** The address of a process's own role. */
const as = (role: 'api' | 'stream' | 'webhooks') => ({
  DATABASE_URL: verified(postgres.postgresUrls[role]),
});

function expectNoSecret(output: string) {
  const secrets = [PASSWORD, REGISTRY_PASSWORD, encodeURIComponent(REGISTRY_PASSWORD)];
  const inUrls = [env.CLICKHOUSE_URL!, ...Object.values(postgres.postgresUrls)].map(
    (url) => new URL(url).password,
  );
  for (const secret of [...secrets, ...inUrls]) expect(output).not.toContain(secret);
}

test('a pill goes all the way over engines with TLS and passwords', async () => {
  const provisioned = await provision();
  expect(provisioned).toMatchObject({ code: 0 });
  const [ingestPort, apiPort, streamPort] = await Promise.all([getPort(), getPort(), getPort()]);
  const plain = { KAFKA_SASL_MECHANISM: 'plain', KAFKA_USERNAME: 'plain' };
  const scram256 = { KAFKA_SASL_MECHANISM: 'scram-sha-256', KAFKA_USERNAME: 'scram-256' };
  const started = await Promise.all([
    start('gateway/ingest/main.js', [], { ...plain, INGEST_PORT: `${ingestPort}` }),
    start('pipelines/main.js', ['latest'], scram256),
    start('pipelines/main.js', ['analytics'], {}),
    start('pipelines/main.js', ['webhooks'], as('webhooks')),
    start('gateway/api/main.js', [], { ...as('api'), API_PORT: `${apiPort}` }),
    start('gateway/stream/main.js', [], { ...as('stream'), STREAM_PORT: `${streamPort}` }),
  ]);
  await Promise.all(started.map((one) => one.ready()));

  const namespace = {
    ...{ name, env },
    engines: { ...testEngines(), postgresUrl: verified(postgres.postgresUrl) },
  };
  const db = openTestDatabase(namespace);
  const { key } = await createTestAccount(db, namespace, { tier: 'pro' });
  const customer = createClient({
    key,
    apiUrl: `http://127.0.0.1:${apiPort}`,
    streamUrl: `ws://127.0.0.1:${streamPort}`,
  });
  const seen: string[] = [];
  let isLive = false;
  const stream = customer.stream({ symbols: ['7203.T'], snapshot: false });
  stream.on('pill', ({ id }) => seen.push(id));
  stream.on('open', () => {
    isLive = true;
  });
  await waitFor('the socket to be live', () => isLive);
  const poster = createPoster(`http://127.0.0.1:${ingestPort}`);
  const pill = makePill();
  await poster.post(pill);
  await waitFor('the pill in the view', async () => {
    const { data } = await customer.latest(['7203.T']);
    return data['7203.T']?.id === pill.id;
  });
  await waitFor('the pill on the socket', () => seen.includes(pill.id));
  const clickhouse = openClickHouse({ url: env.CLICKHOUSE_URL!, database: databaseName(name) });
  await waitFor('the pill in ClickHouse', async () => {
    const answer = await clickhouse.query({ query: 'SELECT id FROM pills', format: 'JSONEachRow' });
    return (await answer.json<{ id: string }>()).some(({ id }) => id === pill.id);
  });

  // No connection of a process is in clear: PostgreSQL knows, and the others accept none.
  const { rows } = await pgQuery(
    `SELECT a.application_name, s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
     WHERE a.application_name LIKE 'pillole-%'`,
  );
  expect(rows.length).toBeGreaterThan(4);
  expect(rows.filter(({ ssl }) => ssl !== true)).toEqual([]);

  await stream.close();
  await Promise.all([poster.close(), clickhouse.close(), db.destroy()]);
  for (const one of started) {
    expect(await one.stop()).toBe(0);
    expectNoSecret(one.output());
  }
});

async function pgQuery(text: string) {
  const connection = new pg.Client({ connectionString: verified(superuserUrl) });
  await connection.connect();
  try {
    return await connection.query<{ application_name: string; ssl: boolean }>(text);
  } finally {
    await connection.end();
  }
}

const wrongHost = (setting: string) => (): Env => ({
  [setting]: env[setting]!.replaceAll('127.0.0.1', 'localhost'),
});
const unknownCa = (setting: string) => (): Env => ({
  [setting]: env[setting]!.replace(
    encodeURIComponent(authority.ca),
    encodeURIComponent(stranger.ca),
  ),
});
const wrongPassword = (setting: string) => (): Env => ({
  [setting]: env[setting]!.replace(/(\/\/[^:]+):[^@]+@/, '$1:wrong@'),
});

describe('refused by provisioning, with what to correct', () => {
  test.each<[string, () => Env, RegExp]>([
    ['Kafka: a wrong password', () => ({ KAFKA_PASSWORD: 'wrong' }), /KAFKA_PASSWORD\.$/m],
    [
      'Kafka: a wrong password by PLAIN',
      () => ({ KAFKA_SASL_MECHANISM: 'plain', KAFKA_USERNAME: 'plain', KAFKA_PASSWORD: 'wrong' }),
      /correct KAFKA_SASL_MECHANISM/,
    ],
    ['Kafka: an unknown CA', () => ({ KAFKA_CA_FILE: stranger.ca }), /correct KAFKA_CA_FILE/],
    ['Kafka: a wrong host name', wrongHost('KAFKA_BROKERS'), /names another host/],
    ['registry: a wrong password', wrongPassword('SCHEMA_REGISTRY_URL'), /SCHEMA_REGISTRY_URL\.$/m],
    ['registry: an unknown CA', unknownCa('SCHEMA_REGISTRY_URL'), /sslrootcert\.$/m],
    ['registry: a wrong host name', wrongHost('SCHEMA_REGISTRY_URL'), /names another host/],
    ['ClickHouse: a wrong password', wrongPassword('CLICKHOUSE_URL'), /CLICKHOUSE_URL\.$/m],
    ['ClickHouse: an unknown CA', unknownCa('CLICKHOUSE_URL'), /sslrootcert\.$/m],
    ['ClickHouse: a wrong host name', wrongHost('CLICKHOUSE_URL'), /names another host/],
    ['PostgreSQL: a wrong password', wrongPassword('DATABASE_URL'), /DATABASE_URL\.$/m],
    ['PostgreSQL: an unknown CA', unknownCa('DATABASE_URL'), /sslrootcert\.$/m],
    ['PostgreSQL: a wrong host name', wrongHost('DATABASE_URL'), /names another host/],
  ])('%s', async (_, more, hint) => {
    const { code, output } = await provision(more());
    expect(output).toMatch(/^Provisioning failed: /m);
    expect(output).toMatch(hint);
    expect(code).toBe(1);
    expectNoSecret(output);
  });
});

test.each<[string, () => Env]>([
  ['a wrong password', wrongPassword('DATABASE_URL')],
  ['an unknown CA', unknownCa('DATABASE_URL')],
  ['a wrong host name', wrongHost('DATABASE_URL')],
])('PostgreSQL: %s counts as an outage, which ends no process', async (_, more) => {
  const options = { namespace: name, name: 'refused', log: silentLog, connectionsMax: 1 };
  const timeouts = { connectMs: 60_000, statementMs: 5_000 };
  const db = openDatabase({ ...options, url: more().DATABASE_URL!, timeouts });
  const failure = await sql`SELECT 1`.execute(db).then(
    () => undefined,
    (error: unknown) => error,
  );
  await db.destroy();
  expect(isDatabaseAway(failure)).toBe(true);
});

test.each<[string, string, readonly string[], Env]>([
  ['ingest', 'gateway/ingest/main.js', [], { INGEST_PORT: '0' }],
  ['latest', 'pipelines/main.js', ['latest'], {}],
])(
  '%s with a wrong password is not ready, says why, and tries again',
  async (_, entry, args, more) => {
    const one = await start(entry, args, { ...more, KAFKA_PASSWORD: 'wrong' });
    await waitFor('several attempts', () =>
      /"attempts":3.*correct KAFKA_SASL_MECH/.test(one.output()),
    );
    const { statusCode, body } = await request(`${one.opsUrl}/ready`);
    await body.dump();
    expect(statusCode).toBe(503);
    expect(await one.stop()).toBe(0);
    expectNoSecret(one.output());
  },
);
