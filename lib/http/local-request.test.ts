import { expect, test } from 'vitest';
import { forwardingHeader, isFromPage, isLocalHost, isLocalOrigin } from './local-request.ts';
import { isLoopback } from './loopback.ts';

test.each([
  ['127.0.0.1', true],
  ['127.255.255.254', true],
  ['localhost', true],
  ['LOCALHOST', true],
  ['::1', true],
  ['[::1]', true],
  ['0:0:0:0:0:0:0:1', true],
  ['::ffff:127.0.0.1', true],
  ['', false],
  ['0.0.0.0', false],
  ['::', false],
  ['128.0.0.1', false],
  ['127.0.0.1.example.com', false],
  ['127.0.0.256', false],
  ['localhost.example.com', false],
  ['::2', false],
  ['::ffff:10.0.0.1', false],
  ['[::1', false],
  ['[127.0.0.1]', false],
])('%s is of this machine: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

test.each([
  [undefined, true],
  ['localhost', true],
  ['localhost:8080', true],
  ['localhost:1', true],
  ['localhost:', true],
  ['LocalHost:8080', true],
  ['127.0.0.1', true],
  ['127.0.0.1:8080', true],
  ['[::1]', true],
  ['[::1]:8080', true],
  ['[0:0:0:0:0:0:0:1]:8080', true],
  ['ingest.example.com', true],
  ['Ingest.Example.com:443', true],
  ['', false],
  [':8080', false],
  ['::1', false],
  ['[::1', false],
  ['[::1]x', false],
  ['[::2]:8080', false],
  ['[fe80::1%lo]', false],
  ['127.0.0.1.nip.io', false],
  ['127.0.0.1.nip.io:8080', false],
  ['7f000001.rebind.example', false],
  ['localhost.example.com', false],
  ['example.com', false],
  ['www.ingest.example.com', false],
  ['192.168.0.1:8080', false],
  ['localhost:8080:8080', false],
  ['localhost:80a', false],
  ['user@localhost', false],
  ['localhost, example.com', false],
  ['example.com#localhost', false],
])('Host %j names this machine or ingest.example.com: %s', (host, expected) => {
  expect(isLocalHost(host, ['ingest.example.com'])).toBe(expected);
});

test.each([
  ['http://localhost:3000', true],
  ['https://127.0.0.1', true],
  ['http://[::1]:8080', true],
  ['null', false],
  ['', false],
  ['http://localhost.example.com', false],
  ['http://127.0.0.1.nip.io:8080', false],
  ['https://example.com', false],
  ['ws://localhost', false],
  ['file://', false],
  ['chrome-extension://abc', false],
  ['http://localhost, https://example.com', false],
])('Origin %j is a page of this machine: %s', (origin, expected) => {
  expect(isLocalOrigin(origin)).toBe(expected);
});

test.each<[Record<string, string>, boolean]>([
  [{}, false],
  [{ 'sec-fetch-site': 'none' }, false],
  [{ 'sec-fetch-site': 'same-origin' }, true],
  [{ 'sec-fetch-site': 'cross-site' }, true],
  [{ origin: 'null' }, true],
  [{ origin: '' }, true],
])('%j is from a web page: %s', (headers, expected) => {
  expect(isFromPage(headers)).toBe(expected);
});

test.each([
  ...['forwarded', 'via', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'],
  ...['x-forwarded-port', 'x-forwarded-anything', 'cf-connecting-ip', 'true-client-ip'],
])('%s shows a proxy, even if it is empty', (name) => {
  expect(forwardingHeader({ host: 'localhost', [name]: '' })).toBe(name);
});

test('other headers show no proxy', () => {
  const headers = { host: 'localhost', forward: 'x', 'x-forward': 'x', 'x-request-id': 'x' };
  expect(forwardingHeader(headers)).toBeUndefined();
});
