import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../config.ts';
import { hostileUrls } from './testing/hostile-urls.ts';
import { checkUrl, readUrlPolicy } from './url-policy.ts';

const strict = { allowLoopback: false, ports: [443, 8443] };
const development = { allowLoopback: true, ports: [443, 8443] };

// The port is allowed here, so that it is never the reason.
test.each(hostileUrls(8443))('%j is refused as %s', (url, code) => {
  const verdict = checkUrl(url, strict);
  expect(verdict).toMatchObject({ ok: false, fault: { code } });
  // A sentence, or two.
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
])('in development as well %s is refused as %s', (url, code) => {
  expect(checkUrl(url, development)).toMatchObject({ ok: false, fault: { code } });
});

test('the policy comes of the environment, strict by default', () => {
  expect(readConfig({}, readUrlPolicy)).toEqual(strict);
  const env = { WEBHOOK_ALLOW_LOOPBACK: 'true', WEBHOOK_PORTS: '443, 9443' };
  expect(readConfig(env, readUrlPolicy)).toEqual({ allowLoopback: true, ports: [443, 9443] });
  expect(() => readConfig({ WEBHOOK_ALLOW_LOOPBACK: '1' }, readUrlPolicy)).toThrow(ConfigError);
});

test.each(['0', '443,', '65536', '443;80', 'https', '0443', '4e2'])(
  'ports cannot be %j',
  (ports) => {
    expect(() => readConfig({ WEBHOOK_PORTS: ports }, readUrlPolicy)).toThrow('WEBHOOK_PORTS');
  },
);
