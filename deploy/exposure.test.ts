import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readApiConfig } from '../gateway/api/config.ts';
import { readDedicatedConfig } from '../gateway/dedicated/config.ts';
import { readIngestConfig } from '../gateway/ingest/config.ts';
import { readStreamConfig } from '../gateway/stream/config.ts';
import { readDemoConfig } from '../generator/demo/config.ts';
import { ConfigError } from '../lib/config/config.ts';
import { readPipelineConfig } from '../pipelines/config.ts';
import { readDestinationsConfig } from '../pipelines/destinations/config.ts';
import { readWebhooksConfig } from '../pipelines/webhooks/config.ts';

type Env = Readonly<Record<string, string>>;
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-exposure-'));
afterAll(() => rmSync(folder, { recursive: true }));
const NEEDED: Env = {
  KAFKA_BROKERS: 'x:1',
  SCHEMA_REGISTRY_URL: 'http://x',
  DATABASE_URL: 'postgres://x',
  CLICKHOUSE_URL: 'http://x',
  KEY_PEPPER_FILE: path.join(folder, 'pepper'),
};
writeFileSync(path.join(folder, 'pepper'), 'ab'.repeat(32));

const CREDENTIALS = path.join(folder, 'generators');
const sha256 = createHash('sha256')
  .update(`gen_${'a'.repeat(40)}`)
  .digest('hex');
writeFileSync(CREDENTIALS, JSON.stringify({ name: 'a', sha256 }));

/** Addresses to listen on. */
const BINDS = {
  loopback: ['127.0.0.1', 'localhost', '::1', '127.0.0.2'],
  public: ['0.0.0.0', '::', '10.0.0.5', '127.0.0.1.example.com', 'localhost.example.com'],
} as const;

/** Public addresses. */
const URLS: Readonly<Record<'local' | 'tls', readonly Env[]>> = {
  local: [
    {},
    { PUBLIC_URL: 'http://localhost:8080', STREAM_URL: 'ws://[::1]:8082' },
    { PUBLIC_URL: 'http://[::1]:8080', INGEST_URL: 'http://127.0.0.1:8081' },
    { PUBLIC_URL: 'http://127.1:8080', TRUSTED_PROXIES: ' , ' },
  ],
  // The API's own address is https in all of these.
  tls: [
    { PUBLIC_URL: 'https://api.example.com' },
    { PUBLIC_URL: 'https://127.0.0.1.example.com' },
    { PUBLIC_URL: 'https://localhost', INGEST_URL: 'https://ingest.example.com' },
    { PUBLIC_URL: 'https://localhost', STREAM_URL: 'wss://stream.example.com' },
    { PUBLIC_URL: 'https://localhost', DEDICATED_URL: 'wss://{name}.example.com' },
    { PUBLIC_URL: 'https://localhost', TRUSTED_PROXIES: '127.0.0.1' },
  ],
};

/** Each with the setting that the refusal must name. */
const REFUSED_URLS: readonly (readonly [Env, string])[] = [
  [{ PUBLIC_URL: 'http://api.example.com' }, 'PUBLIC_URL'],
  [{ PUBLIC_URL: 'http://10.0.0.5:8080' }, 'PUBLIC_URL'],
  [{ PUBLIC_URL: 'http://127.0.0.1@example.com' }, 'PUBLIC_URL'],
  [{ PUBLIC_URL: 'ws://127.0.0.1:8080' }, 'PUBLIC_URL'],
  [{ PUBLIC_URL: 'api.example.com' }, 'PUBLIC_URL'],
  [{ INGEST_URL: 'http://ingest.example.com' }, 'INGEST_URL'],
  [{ STREAM_URL: 'ws://stream.example.com' }, 'STREAM_URL'],
  [{ STREAM_URL: 'http://127.0.0.1:8082' }, 'STREAM_URL'],
  [{ DEDICATED_URL: 'ws://stream.example.com:{port}' }, 'DEDICATED_URL'],
];

type Read = (env: Env) => { readonly open: readonly string[] };

/** @returns the first setting of `names` that the refusal names, or what `outcome` says */
function outcomeOf<C>(
  read: (env: Env) => C,
  env: Env,
  names: readonly string[],
  outcome: (config: C) => string,
) {
  try {
    return outcome(read({ ...NEEDED, ...env }));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { message } = error;
    return names.find((name) => message.includes(name)) ?? message;
  }
}

/** Every address of a kind to listen on, with public addresses of a kind. */
function environments(name: string, bind: keyof typeof BINDS, url: keyof typeof URLS): Env[] {
  return BINDS[bind].flatMap((host) =>
    URLS[url].map((urls) => ({ [`${name}_HOST`]: host, ...urls })),
  );
}

describe('the API', () => {
  const outcome = ({ canBuy, isLocal }: ReturnType<typeof readApiConfig>) =>
    `${canBuy ? 'free' : 'paid'} ${isLocal ? 'local' : 'public'}`;

  test.each<[keyof typeof BINDS, keyof typeof URLS, Env, string]>([
    ['loopback', 'local', {}, 'free local'],
    ['loopback', 'local', { API_PUBLIC: 'yes' }, 'free local'],
    ['loopback', 'local', { BILLING: 'test' }, 'free local'],
    ['loopback', 'local', { BILLING: 'off' }, 'paid local'],
    ['loopback', 'tls', {}, 'paid public'],
    ['loopback', 'tls', { API_PUBLIC: 'yes' }, 'paid public'],
    ['loopback', 'tls', { BILLING: 'test' }, 'free public'],
    ['loopback', 'tls', { BILLING: 'off' }, 'paid public'],
    ['public', 'local', {}, 'API_PUBLIC=yes'],
    ['public', 'local', { BILLING: 'test' }, 'API_PUBLIC=yes'],
    // Session cookies would lack Secure.
    ['public', 'local', { API_PUBLIC: 'yes' }, 'PUBLIC_URL to the https'],
    ['public', 'local', { API_PUBLIC: 'yes', BILLING: 'test' }, 'PUBLIC_URL to the https'],
    ['public', 'tls', {}, 'API_PUBLIC=yes'],
    ['public', 'tls', { API_PUBLIC: 'no' }, 'API_PUBLIC=yes'],
    ['public', 'tls', { BILLING: 'test' }, 'API_PUBLIC=yes'],
    ['public', 'tls', { API_PUBLIC: 'yes' }, 'paid public'],
    ['public', 'tls', { API_PUBLIC: 'yes', BILLING: 'test' }, 'free public'],
    ['public', 'tls', { API_PUBLIC: 'yes', BILLING: 'off' }, 'paid public'],
  ])('listens on %s, %s public addresses, %j: %s', (bind, url, setting, expected) => {
    const named = expected.includes('_') ? [expected] : [];
    for (const env of environments('API', bind, url)) {
      const found = outcomeOf(readApiConfig, { ...env, ...setting }, named, outcome);
      expect(found, JSON.stringify(env)).toBe(expected);
    }
  });

  test.each<Env>([
    { TRUSTED_PROXIES: '127.0.0.1' },
    { INGEST_URL: 'https://ingest.example.com' },
    { STREAM_URL: 'wss://stream.example.com', PUBLIC_URL: 'http://localhost:8080' },
  ])('%j: without an https PUBLIC_URL session cookies would lack Secure', (env) => {
    expect(() => readApiConfig({ ...NEEDED, ...env })).toThrow(/set PUBLIC_URL .* lack Secure/);
  });
});

describe('ingest', () => {
  const file = { INGEST_CREDENTIALS_FILE: CREDENTIALS };
  const confirmed = { INGEST_PUBLIC: 'yes' };
  const opened = { INGEST_OPEN: 'yes' };
  const outcome = ({ credentialsFile, open }: ReturnType<typeof readIngestConfig>) => {
    const isOpen = open.join().includes('pills without a credential');
    expect(isOpen).toBe(credentialsFile === undefined);
    return isOpen ? 'open' : 'closed';
  };

  test.each<[keyof typeof BINDS, keyof typeof URLS, Env, string]>([
    ['loopback', 'local', {}, 'open'],
    ['loopback', 'local', opened, 'open'],
    ['loopback', 'local', file, 'closed'],
    ['loopback', 'tls', {}, 'INGEST_CREDENTIALS_FILE'],
    ['loopback', 'tls', { INGEST_OPEN: 'no' }, 'INGEST_CREDENTIALS_FILE'],
    ['loopback', 'tls', confirmed, 'INGEST_CREDENTIALS_FILE'],
    ['loopback', 'tls', opened, 'open'],
    ['loopback', 'tls', file, 'closed'],
    ['public', 'local', {}, 'INGEST_PUBLIC=yes'],
    ['public', 'local', opened, 'INGEST_PUBLIC=yes'],
    ['public', 'local', file, 'INGEST_PUBLIC=yes'],
    ['public', 'local', confirmed, 'INGEST_CREDENTIALS_FILE'],
    ['public', 'local', { ...confirmed, ...opened }, 'open'],
    ['public', 'local', { ...confirmed, ...file }, 'closed'],
    ['public', 'tls', {}, 'INGEST_PUBLIC=yes'],
    ['public', 'tls', confirmed, 'INGEST_CREDENTIALS_FILE'],
    ['public', 'tls', { ...confirmed, ...opened }, 'open'],
    ['public', 'tls', { ...confirmed, ...file }, 'closed'],
  ])('listens on %s, %s public addresses, %j: %s', (bind, url, setting, expected) => {
    const named = expected.includes('_') ? [expected] : [];
    for (const env of environments('INGEST', bind, url)) {
      const found = outcomeOf(readIngestConfig, { ...env, ...setting }, named, outcome);
      expect(found, JSON.stringify(env)).toBe(expected);
    }
  });
});

const SERVERS: readonly (readonly [string, Read, Env])[] = [
  ['API', readApiConfig, { PUBLIC_URL: 'https://api.example.com' }],
  ['INGEST', readIngestConfig, { INGEST_CREDENTIALS_FILE: CREDENTIALS }],
  ['STREAM', readStreamConfig, {}],
  ['DEDICATED', readDedicatedConfig, {}],
];

describe.each(SERVERS)('%s', (name, read, needed) => {
  test.each(REFUSED_URLS)('%j is refused, whatever the settings', (urls, setting) => {
    const confirmed = { [`${name}_PUBLIC`]: 'yes', BILLING: 'test', INGEST_OPEN: 'yes' };
    for (const host of ['127.0.0.1', '0.0.0.0']) {
      const env = { ...NEEDED, ...needed, ...confirmed, [`${name}_HOST`]: host, ...urls };
      expect(() => read(env)).toThrow(new RegExp(`(?:^|; )${setting}(?: .*)? must be `));
    }
  });

  test('an address that other machines reach in clear must be confirmed', () => {
    const reached = { ...NEEDED, ...needed, [`${name}_HOST`]: '0.0.0.0' };
    expect(() => read(reached)).toThrow(`${name}_PUBLIC=yes`);
    expect(() => read({ ...reached, [`${name}_PUBLIC`]: 'true' })).toThrow(`${name}_PUBLIC must`);
    expect(read({ ...reached, [`${name}_PUBLIC`]: 'yes' }).open).toEqual([
      `${name.toLowerCase()} in clear on 0.0.0.0 (${name}_PUBLIC=yes)`,
    ]);
  });
});

test.each<[string, Read, Env]>([
  ...SERVERS.map(([name, read, needed]): [string, Read, Env] => [name, read, needed]),
  ['latest', (env) => readPipelineConfig(env, false), {}],
  ['analytics', (env) => readPipelineConfig(env, true), {}],
  ['webhooks', readWebhooksConfig, {}],
  ['destinations', readDestinationsConfig, {}],
  ['demo', readDemoConfig, { INGEST_URL: 'http://127.0.0.1:8081' }],
])('metrics of %s in clear for other machines must be confirmed', (_name, read, needed) => {
  for (const host of BINDS.public) {
    const env = { ...NEEDED, ...needed, METRICS_HOST: host };
    expect(() => read(env)).toThrow('METRICS_PUBLIC=yes');
    const line = `metrics in clear on ${host} (METRICS_PUBLIC=yes)`;
    expect(read({ ...env, METRICS_PUBLIC: 'yes' }).open).toContain(line);
  }
  for (const host of BINDS.loopback) read({ ...NEEDED, ...needed, METRICS_HOST: host });
});

test.each<[Env, boolean]>([
  [{}, true],
  [{ PUBLIC_URL: 'https://localhost' }, true],
  [{ TRUSTED_PROXIES: ' , ' }, true],
  [{ PUBLIC_URL: 'https://api.example.com' }, false],
  [{ PUBLIC_URL: 'https://localhost', TRUSTED_PROXIES: '127.0.0.1' }, false],
  ...SERVERS.map(([name]): [Env, boolean] => [{ [`${name}_HOST`]: '10.0.0.5' }, false]),
])('webhooks to this machine, with %j: %s', (env, isAllowed) => {
  const { egress } = readWebhooksConfig({ ...NEEDED, WEBHOOK_ALLOW_LOOPBACK: 'true', ...env });
  expect(egress.policy.allowLoopback).toBe(isAllowed);
});

const OUTCOMES =
  'what became of pills, without a credential (no INGEST_CREDENTIALS_FILE, and every address is of this machine)';

test.each<[Read, Env, readonly string[]]>([
  [readApiConfig, {}, ['every tier without payment (every address is of this machine)', OUTCOMES]],
  [readApiConfig, { BILLING: 'test' }, ['every tier without payment (BILLING=test)', OUTCOMES]],
  [
    readApiConfig,
    { INGEST_CREDENTIALS_FILE: CREDENTIALS },
    ['every tier without payment (every address is of this machine)'],
  ],
  [readApiConfig, { PUBLIC_URL: 'https://api.example.com' }, []],
  [
    readIngestConfig,
    {},
    [
      'pills without a credential (no INGEST_CREDENTIALS_FILE, and every address is of this machine)',
    ],
  ],
  [
    readIngestConfig,
    { INGEST_OPEN: 'yes' },
    ['pills without a credential (no INGEST_CREDENTIALS_FILE, and INGEST_OPEN=yes)'],
  ],
  [readIngestConfig, { INGEST_CREDENTIALS_FILE: CREDENTIALS }, []],
])('%o with %j: the start log says what is open and why', (read, env, open) => {
  expect(read({ ...NEEDED, ...env }).open).toEqual(open);
});
