// The publisher against servers that attack or fail: no engine, real sockets.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openResolver } from '../../webhooks/send/resolve.ts';
import { type Decoy, openDecoy } from '../../webhooks/send/testing/decoy.ts';
import {
  type DnsStub,
  openDnsStub,
  type StubAnswer,
} from '../../webhooks/send/testing/dns-stub.ts';
import { policyOf } from '../../webhooks/send/testing/policy.ts';
import { DeliveryError } from '../destination-type.ts';
import { openS3Publisher } from './s3-publisher.ts';
import { S3_PATTERNS, type S3Settings } from './s3-settings.ts';
import { s3 } from './s3-type.ts';

const SECRET = 'this-secret-must-stay-here';
const ACCESS = 'AKIDOFTHECUSTOMER';
const NAME = 's3.example.com';

let stub: DnsStub;
/** Listens on every address of this machine. */
let decoy: Decoy;
const servers: Server[] = [];

beforeAll(async () => {
  stub = await openDnsStub();
  decoy = await openDecoy('::');
});
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await decoy.close();
  await stub.close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** @returns the error of a test send; undefined = it succeeded */
async function tryOut(
  endpoint: string,
  { allowLoopback, settings }: { allowLoopback: boolean; settings?: Partial<S3Settings> },
): Promise<DeliveryError | undefined> {
  const publisher = openS3Publisher({
    destinationId: 'dst_test',
    settings: {
      ...{ endpoint, region: 'us-east-1', bucket: 'example-pills', prefix: '' },
      ...{ addressing: 'path', format: 'ndjson', window_s: 60 },
      ...settings,
    },
    secrets: { access_key_id: ACCESS, secret_access_key: SECRET },
    egress: {
      policy: policyOf({ allowLoopback, ports: [443, 8443, decoy.port] }),
      resolver: openResolver({ servers: [stub.server] }),
    },
  });
  try {
    await publisher.test(AbortSignal.timeout(20_000));
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(DeliveryError);
    return error as DeliveryError;
  } finally {
    await publisher.close();
  }
}

const PRIVATE: readonly (readonly [string, readonly StubAnswer[]])[] = [
  ['loopback', [['127.0.0.1']]],
  ['metadata of clouds', [['169.254.169.254']]],
  ['loopback, in IPv6', [['::1']]],
  ['one private address among public ones', [['93.184.216.34', '127.0.0.1']]],
  ['a name that has become private', [['127.0.0.1'], ['10.0.0.1']]],
];

test.each(PRIVATE)('no connection is opened to %s', async (_what, answers) => {
  stub.set(NAME, ...answers);
  const before = decoy.connectionCount();
  const error = await tryOut(`https://${NAME}:${decoy.port}`, { allowLoopback: false });
  expect(error?.reason).toBe('address_refused');
  expect(decoy.connectionCount()).toBe(before);
});

test('the bucket in front of the host is resolved and vetted too', async () => {
  stub.set(`example-pills.${NAME}`, ['127.0.0.1']);
  const before = decoy.connectionCount();
  const error = await tryOut(`https://${NAME}:${decoy.port}`, {
    allowLoopback: false,
    settings: { addressing: 'host' },
  });
  expect(error?.reason).toBe('address_refused');
  expect(decoy.connectionCount()).toBe(before);
});

test.each([
  [301, 'PermanentRedirect'],
  [302, 'Found'],
  [307, 'TemporaryRedirect'],
])('a redirect by %i is not followed', async (status, code) => {
  const before = decoy.connectionCount();
  const url = await serve((request, response) => {
    request.resume();
    response.writeHead(status, {
      location: `http://127.0.0.1:${decoy.port}/`,
      'x-amz-bucket-region': 'x',
    });
    response.end(`<Error><Code>${code}</Code><Endpoint>127.0.0.1:${decoy.port}</Endpoint></Error>`);
  });
  const error = await tryOut(url, { allowLoopback: true });
  expect(error?.status).toBe(status);
  expect(decoy.connectionCount()).toBe(before);
});

test('an endless answer is not read, and its connection is closed', async () => {
  let closed: () => void = () => undefined;
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const url = await serve((request, response) => {
    request.resume();
    response.writeHead(200);
    const timer = setInterval(() => response.write(Buffer.alloc(16 * 1024)), 1);
    response.on('close', () => {
      clearInterval(timer);
      closed();
    });
  });
  const error = await tryOut(url, { allowLoopback: true });
  expect(error?.reason).toBe('protocol');
  await isClosed;
});

test('an error says what to do, and neither credentials nor words of the server', async () => {
  const url = await serve((request, response) => {
    request.resume();
    response.writeHead(403, { 'content-type': 'application/xml' });
    response.end(
      `<Error><Code>InvalidAccessKeyId</Code><Message>No ${ACCESS}, see http://evil.example</Message>` +
        `<AWSAccessKeyId>${ACCESS}</AWSAccessKeyId></Error>`,
    );
  });
  const error = await tryOut(url, { allowLoopback: true });
  expect(error?.message).toBe(
    'The S3 service answered 403 (InvalidAccessKeyId). Send an access key that exists.',
  );
  const told = JSON.stringify({ ...error, stack: error?.stack, cause: error?.cause });
  for (const secret of [SECRET, ACCESS, 'evil.example']) expect(told).not.toContain(secret);
});

test('the secret is in no request, and a code of the server that is no word is not shown', async () => {
  let sent = '';
  const url = await serve((request, response) => {
    sent += `${request.url} ${JSON.stringify(request.headers)}`;
    request.on('data', (chunk: Buffer) => {
      sent += chunk.toString('utf8');
    });
    response.writeHead(400, { 'content-type': 'application/xml' });
    response.end('<Error><Code>a&lt;b&gt; \u001b[31m</Code></Error>');
  });
  const error = await tryOut(url, { allowLoopback: true });
  expect(error?.message).toContain('answered 400 (Unknown)');
  expect(sent).toContain(ACCESS);
  expect(sent).not.toContain(SECRET);
});

const check = (settings: object) => s3.faults({ ...s3.example.settings, ...settings }, policyOf());

test.each([
  [{ endpoint: 'http://s3.example.com' }, 'endpoint'],
  [{ endpoint: 'https://127.0.0.1' }, 'endpoint'],
  [{ endpoint: 'https://169.254.169.254' }, 'endpoint'],
  [{ endpoint: 'https://user:pw@s3.example.com' }, 'endpoint'],
  [{ endpoint: 'https://s3.example.com/other/path' }, 'endpoint'],
  [{ endpoint: 'https://s3.example.com/?x=1' }, 'endpoint'],
  [{ addressing: 'host', bucket: 'a.b.c' }, 'addressing'],
])('%j is refused', (settings, name) => {
  expect(check(settings).map(({ setting }) => setting)).toEqual([name]);
});

test.each([
  '..',
  'a/../b',
  'a/b',
  '../etc',
  'arn:aws:s3:::x',
  'UPPER',
  'a..b',
  '-ab',
  'ab-',
  'a?b',
  'a%2fb',
  'ab',
  'a b',
  '',
])('the bucket %j does not match its schema', (bucket) => {
  expect(new RegExp(S3_PATTERNS.bucket).test(bucket)).toBe(false);
});

test.each(['/', '//', '../', 'a/../', './', 'a//b/', 'a', 'a/b', '.hidden/', 'a b/', 'a%2f/'])(
  'the prefix %j does not match its schema',
  (prefix) => {
    expect(new RegExp(S3_PATTERNS.prefix).test(prefix)).toBe(false);
  },
);

test('an egress proxy of ours that is away is no failure of the service', async () => {
  const closed = await openDecoy('127.0.0.1');
  await closed.close();
  stub.set(NAME, ['93.184.216.34']);
  const publisher = openS3Publisher({
    destinationId: 'dst_test',
    settings: { ...s3.example.settings, endpoint: `https://${NAME}` } as S3Settings,
    secrets: { access_key_id: ACCESS, secret_access_key: SECRET },
    egress: {
      policy: policyOf(),
      resolver: openResolver({ servers: [stub.server] }),
      proxy: {
        ...{ origin: `http://127.0.0.1:${closed.port}`, authorization: undefined },
        resolvesNames: false,
      },
    },
  });
  const error = await publisher.test(AbortSignal.timeout(20_000)).catch((thrown) => thrown);
  expect(error).toMatchObject({ reason: 'egress_down' });
  expect(error).not.toBeInstanceOf(DeliveryError);
  await publisher.close();
});
