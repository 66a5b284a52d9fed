import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../lib/config/config.ts';
import { hostileUrls } from './testing/hostile-urls.ts';
import { policyOf } from './testing/policy.ts';
import { checkUrl, readUrlPolicy } from './url-policy.ts';

const strict = policyOf();
const development = policyOf({ allowLoopback: true });

// The port is allowed, so that it is never the reason.
test.each(hostileUrls(8443))('%j is refused as %s', (url, code) => {
  const verdict = checkUrl(url, strict);
  expect(verdict).toMatchObject({ ok: false, fault: { code } });
  // One or two sentences.
  expect(!verdict.ok && verdict.fault.detail).toMatch(/^[A-Za-z\d].* .*\.$/);
});

test.each([
  ['https://hooks.example.com', 'https://hooks.example.com/'],
  ['https://hooks.example.com/a/b?c=d&e=%20%00', 'https://hooks.example.com/a/b?c=d&e=%20%00'],
  ['https://hooks.example.com/a@b:c', 'https://hooks.example.com/a@b:c'],
  ['HTTPS://Hooks.Example.COM:443/X', 'https://hooks.example.com/X'],
  ['https://hooks.example.com:8443/', 'https://hooks.example.com:8443/'],
  ['https://xn--mller-kva.example/', 'https://xn--mller-kva.example/'],
  ['https://a_b.example.com/', 'https://a_b.example.com/'],
  ['https://8.8.8.8/', 'https://8.8.8.8/'],
  ['https://[2001:4860:4860::8888]:8443/', 'https://[2001:4860:4860::8888]:8443/'],
  ['https://notlocalhost.example/', 'https://notlocalhost.example/'],
  ['https://localhost.example.com/', 'https://localhost.example.com/'],
  [`https://hooks.example.com/${'x'.repeat(2_022)}`, undefined],
])('%s passes', (url, href) => {
  expect(checkUrl(url, strict)).toMatchObject({ ok: true, url: { href: href ?? url } });
});

test.each([
  'http://127.0.0.1:3000/hook',
  'http://127.0.0.53/',
  'https://127.0.0.1:1/',
  'http://localhost:3000/',
  'https://a.localhost/',
  'http://[::1]:3000/',
])('in development %s passes', (url) => {
  expect(checkUrl(url, development)).toMatchObject({ ok: true });
});

test.each([
  ['http://127.1:3000/', 'url_host_spelling'],
  ['http://0.0.0.0:3000/', 'url_scheme'],
  ['http://10.0.0.1/', 'url_scheme'],
  ['https://10.0.0.1/', 'url_address'],
  ['http://hooks.example.com/', 'url_scheme'],
  ['https://hooks.example.com:3000/', 'url_port'],
  ['https://[::ffff:7f00:1]/', 'url_address'],
  ['http://user@127.0.0.1/', 'url_credentials'],
  ['http://localhost.:3000/', 'url_scheme'],
])('also in development %s is refused as %s', (url, code) => {
  expect(checkUrl(url, development)).toMatchObject({ ok: false, fault: { code } });
});

test('the policy comes from the environment, strict by default', () => {
  expect(readConfig({}, readUrlPolicy)).toMatchObject({ allowLoopback: false, ports: [443, 8443] });
  const env = { WEBHOOK_ALLOW_LOOPBACK: 'true', WEBHOOK_PORTS: '443, 9443' };
  expect(readConfig(env, readUrlPolicy)).toMatchObject({ allowLoopback: true, ports: [443, 9443] });
  expect(() => readConfig({ WEBHOOK_ALLOW_LOOPBACK: '1' }, readUrlPolicy)).toThrow(ConfigError);
});

test.each(['0', '443,', '65536', '443;80', 'https', '0443', '4e2'])(
  'ports cannot be %j',
  (ports) => {
    expect(() => readConfig({ WEBHOOK_PORTS: ports }, readUrlPolicy)).toThrow('WEBHOOK_PORTS');
  },
);

test.each([
  [{}, true],
  [{ PUBLIC_URL: 'http://127.0.0.1:8080', STREAM_URL: 'ws://localhost:8082' }, true],
  [{ PUBLIC_URL: 'http://[::1]:8080', DEDICATED_URL: 'ws://127.0.0.1:{port}' }, true],
  [{ PUBLIC_URL: 'https://api.example.com' }, false],
  [{ PUBLIC_URL: 'http://127.0.0.1:8080', INGEST_URL: 'https://203.0.113.7' }, false],
  [{ STREAM_URL: 'wss://stream.example.com' }, false],
  [{ DEDICATED_URL: 'wss://{name}.example.com' }, false],
  [{ PUBLIC_URL: 'not a URL' }, false],
])('with %j, loopback is allowed on request: %j', (env, isAllowed) => {
  const asked = { ...env, WEBHOOK_ALLOW_LOOPBACK: 'true' };
  expect(readConfig(asked, readUrlPolicy).allowLoopback).toBe(isAllowed);
  expect(readConfig(env, readUrlPolicy).allowLoopback).toBe(false);
});

const STACK = {
  KAFKA_BROKERS: '127.0.0.1:9092, 127.0.0.1:9192',
  SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8085/apis/ccompat/v7',
  CLICKHOUSE_URL: 'http://default:secret@127.0.0.1:8123',
  DATABASE_URL: 'postgres://postgres@127.0.0.1/pillole',
  SMTP_URL: 'smtp://127.0.0.1:2525',
  PUBLIC_URL: 'http://127.0.0.1:18080',
  METRICS_PORT: '9104',
  DEDICATED_PORTS: '8301-8302',
  WEBHOOK_ALLOW_LOOPBACK: 'true',
  WEBHOOK_REFUSED_PORTS: '9093,9101-9103',
};

test('also in development, no URL leads to a port of an engine or a process of ours', () => {
  const policy = readConfig(STACK, readUrlPolicy);
  const own = [
    ...[9092, 9192, 8085, 8123, 5432, 2525, 18080, 9104, 8301, 8302, 9093, 9101, 9102, 9103],
    // Defaults of the processes that serve customers.
    ...[8080, 8081, 8082],
  ];
  for (const port of own) {
    for (const host of ['127.0.0.1', '127.9.9.9', 'localhost', 'a.localhost', '[::1]']) {
      const verdict = checkUrl(`http://${host}:${port}/`, policy);
      expect(verdict, `${host}:${port}`).toMatchObject({ fault: { code: 'url_own_port' } });
    }
  }
  expect(checkUrl('http://127.0.0.1:4242/', policy)).toMatchObject({ ok: true });
});

test('no URL leads to a name or address of our services and engines', () => {
  const env = { PUBLIC_URL: 'https://api.example.com', CLICKHOUSE_URL: 'https://8.8.8.8:8443' };
  const policy = readConfig(env, readUrlPolicy);
  for (const url of [
    'https://api.example.com/',
    'https://API.example.com:8443/x',
    'https://8.8.8.8/',
  ]) {
    expect(checkUrl(url, policy), url).toMatchObject({ fault: { code: 'url_own_host' } });
  }
  expect(checkUrl('https://hooks.example.com/', policy)).toMatchObject({ ok: true });
});

test.each(['x', '1-', '9103-9101', '65536', '80;81'])('refused ports cannot be %j', (ports) => {
  const read = () => readConfig({ WEBHOOK_REFUSED_PORTS: ports }, readUrlPolicy);
  expect(read).toThrow('WEBHOOK_REFUSED_PORTS');
});
