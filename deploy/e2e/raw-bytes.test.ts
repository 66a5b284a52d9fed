import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { playCorpus } from '../../testing/http-corpus.ts';
import { createNamespace } from '../../testing/namespace.ts';
import { getPort, getPortRange } from '../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../testing/process.ts';

const running = new Map<string, { readonly process: TestProcess; readonly url: string }>();

beforeAll(async () => {
  const { env } = await createNamespace();
  const start = async (
    name: string,
    entry: string,
    more: Readonly<Record<string, string>> = {},
  ) => {
    const args = entry === 'pipelines/main.js' ? [name] : [];
    const process = await startProcess(entry, args, { ...env, ...more });
    const url = Object.entries(more).find(([key]) => key.endsWith('_PORT'))?.[1] ?? '';
    running.set(name, { process, url: `http://127.0.0.1:${url}` });
    await process.ready();
  };
  const ports = await getPortRange();
  const [ingest, api, stream] = await Promise.all([getPort(), getPort(), getPort()]);
  await Promise.all([
    start('ingest', 'gateway/ingest/main.js', { INGEST_PORT: String(ingest) }),
    start('api', 'gateway/api/main.js', { API_PORT: String(api) }),
    start('stream', 'gateway/stream/main.js', { STREAM_PORT: String(stream) }),
    start('dedicated', 'gateway/dedicated/main.js', {
      DEDICATED_PORTS: `${ports.from}-${ports.to}`,
    }),
    ...['latest', 'analytics', 'webhooks', 'destinations'].map((name) =>
      start(name, 'pipelines/main.js'),
    ),
  ]);
});

afterAll(() => Promise.all([...running.values()].map(({ process }) => process.stop())));

const get = async (url: string) => {
  const { statusCode, body } = await request(url);
  await body.dump();
  return statusCode;
};

describe('no request ends a process, or gets an answer of 5xx', () => {
  test.each([
    ['ingest', ['/api/pillole', '/health'], '/health', 200],
    ['api', ['/api/pills/latest', '/api/status', '/docs'], '/api/status', 200],
    ['stream', ['/api/stream', '/health'], '/api/stream', 426],
  ] as const)('the port of %s', async (name, paths, path, status) => {
    const { process, url } = running.get(name)!;
    const check = async () => expect(await get(`${url}${path}`)).toBe(status);
    await playCorpus({ url, paths, child: process.child, check });
  });

  test.each([
    'ingest',
    'api',
    'stream',
    'dedicated',
    'latest',
    'analytics',
    'webhooks',
    'destinations',
  ])('the metrics of %s', async (name) => {
    const { process } = running.get(name)!;
    const url = process.opsUrl;
    const check = async () => {
      expect([await get(`${url}/ready`), await get(`${url}/metrics`)]).toEqual([200, 200]);
      expect(await get(`${url}//`)).toBe(404);
    };
    await playCorpus({ url, paths: ['/metrics'], child: process.child, check });
  });
});
