import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { publicTarget } from '../http/client-proof.ts';
import { readStreamConfig } from './config.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-stream-config-'));
const pepper = path.join(folder, 'pepper');
writeFileSync(pepper, 'ab'.repeat(32));
afterAll(() => rmSync(folder, { recursive: true }));

const NEEDED = {
  ...{ KAFKA_BROKERS: '127.0.0.1:9092', SCHEMA_REGISTRY_URL: 'http://127.0.0.1:8085' },
  ...{ DATABASE_URL: 'postgres://127.0.0.1/pillole', KEY_PEPPER_FILE: pepper },
};
const DEDICATED = { DEDICATED_NAME: 'desk', DEDICATED_ACCOUNT: 'acc_1', STREAM_PORT: '8301' };
const PATH = '/api/stream/dedicated/desk';

// The proxy of deploy/compose takes the port away before the process sees the path.
test.each([
  [
    { STREAM_URL: 'wss://stream.example.com' },
    '/api/stream',
    'wss://stream.example.com/api/stream',
  ],
  [{ STREAM_URL: 'wss://s.example.com:443/' }, '/api/stream', 'wss://s.example.com/api/stream'],
  [{ STREAM_URL: 'wss://example.com/live' }, '/api/stream', 'wss://example.com/live/api/stream'],
  [
    { DEDICATED_URL: 'wss://d.example.com/{port}', ...DEDICATED },
    PATH,
    `wss://d.example.com/8301${PATH}`,
  ],
  [
    { DEDICATED_URL: 'wss://{name}.example.com', ...DEDICATED },
    PATH,
    `wss://desk.example.com${PATH}`,
  ],
  [{ DEDICATED_URL: 'ws://127.0.0.1:{port}', ...DEDICATED }, PATH, `ws://127.0.0.1:8301${PATH}`],
])(
  'with %j, the signature of a handshake covers the URL that the client opens',
  (urls, target, url) => {
    const { publicUrl } = readStreamConfig({ ...NEEDED, ...urls });
    expect(publicTarget(publicUrl, target)).toBe(url);
  },
);
