import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openProducer } from '../../lib/kafka/producer.ts';
import { createEncoder } from '../../schemas/avro.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import {
  countPillsInLog,
  postBytes,
  startIngest,
  type TestIngest,
} from '../../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { makePill } from '../../testing/pills.ts';
import { getPort } from '../../testing/ports.ts';
import { startProcess } from '../../testing/process.ts';
import { openRaw } from '../../testing/raw-http.ts';
import { waitFor } from '../../testing/wait.ts';
import { pillOf, readPills, useIngest } from './testing/post.ts';

const { opened, post } = useIngest();
let namespace: Namespace;
let ingest: TestIngest;

beforeAll(() => {
  ({ namespace, ingest } = opened());
});

describe('symbols are bounded', () => {
  test('a new symbol over the bound is 503; a known one passes, even after a restart', async () => {
    const own = await createNamespace({ partitions: 1, symbols_max: 3 });
    // Symbols of the latest view count from the start.
    const producer = await openProducer(own.client);
    const encode = createEncoder('latest-pill', await own.schemas.register('latest'));
    const { received_at: _r, kind: _k, ...pill } = makePill({ symbol: 'OLD' });
    const value = encode({
      ...pill,
      epoch: own.settings.epoch,
      offset: 0,
      last_offset: 0,
      processed_offset: 0,
      prev_offset: null,
      received_at: pill.timestamp,
      backfill: false,
    });
    await producer.produce([
      { topic: topicName(own.name, 'latest'), partition: 0, key: 'OLD', value },
    ]);
    await producer.close();
    const small = await startIngest(own);
    try {
      await small.process.ready();
      const url = `${small.url}/api/pillole`;
      const statuses = [];
      for (const symbol of ['A', 'B', 'C', 'A', 'OLD']) {
        statuses.push((await post(pillOf({ symbol }), { url })).status);
      }
      expect(statuses).toEqual([200, 200, 503, 200, 200]);
      const refused = await post(pillOf({ symbol: 'C' }), { url });
      expect(refused.json).toMatchObject({ code: 'symbol_limit', stored: 'no', retry: 'never' });
      const rows = [pillOf({ symbol: 'C' }), pillOf({ symbol: 'B' })];
      const batch = await post(rows, { url: `${url}/batch` });
      expect(batch.json).toMatchObject({ ok: 1, refused: 1, results: [{ index: 0 }] });
    } finally {
      await small.process.stop();
    }
  });
});

describe('generator credentials', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-ingest-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('are required once there is a file, and the name becomes the source', async () => {
    const token = `gen_${randomUUID().replaceAll('-', '')}`;
    const file = path.join(folder, 'generators.jsonl');
    const sha256 = createHash('sha256').update(token).digest('hex');
    writeFileSync(file, `${JSON.stringify({ name: 'tokyo-1', sha256 })}\n`);
    const closed = await startIngest(namespace, { INGEST_CREDENTIALS_FILE: file });
    try {
      await closed.process.ready();
      const url = `${closed.url}/api/pillole`;
      const pill = pillOf();
      const count = await countPillsInLog(namespace);
      const missing = await post(pill, { url });
      expect(missing.status).toBe(401);
      expect(missing.headers['www-authenticate']).toMatch(/^Bearer/);
      expect(missing.json).toMatchObject({ code: 'credential_missing', stored: 'no' });
      const wrong = { authorization: `Bearer gen_${'x'.repeat(32)}` };
      const invalid = await post(pill, { url, headers: wrong });
      expect([invalid.status, invalid.json.code]).toEqual([403, 'credential_invalid']);
      expect(await countPillsInLog(namespace)).toBe(count);
      const good = await post(pill, { url, headers: { authorization: `Bearer ${token}` } });
      expect(good.status).toBe(200);
      const record = (await readPills(namespace)).find(({ id }) => id === pill.id);
      expect(record?.source).toBe('tokyo-1');
      expect(closed.process.output()).not.toContain('gen_');
    } finally {
      await closed.process.stop();
    }
  });

  test('without a file, a reachable address ends the process with one sentence', async () => {
    const process = await startProcess('gateway/ingest/main.js', [], {
      ...namespace.env,
      INGEST_PORT: String(await getPort()),
      INGEST_HOST: '0.0.0.0',
    });
    expect(await process.exited).toBe(2);
    expect(process.output()).toMatch(/^ingest cannot start: INGEST_HOST [^\n]+\n$/);
  });
});

describe('start and stop', () => {
  test('without a broker the process keeps running, reports why it is not ready, and stores nothing', async () => {
    const lost = await startIngest(namespace, { KAFKA_BROKERS: `127.0.0.1:${await getPort()}` });
    try {
      const ready = () => fetch(`${lost.url}/ready`);
      const reason = await waitFor('a reason', async () => {
        const { reason } = (await (await ready()).json()) as { reason: string };
        return reason.startsWith('starting: ') && { reason };
      });
      expect(reason.reason.length).toBeGreaterThan(12);
      expect((await ready()).status).toBe(503);
      expect((await fetch(`${lost.url}/health`)).status).toBe(200);
      const refused = await post(pillOf(), { url: `${lost.url}/api/pillole` });
      expect(refused.status).toBe(503);
      expect(refused.headers['retry-after']).toBe('1');
      expect(refused.json).toMatchObject({ code: 'log_unavailable', stored: 'no' });
    } finally {
      expect(await lost.process.stop()).toBe(0);
    }
  });

  test('SIGTERM during posts: exit code 0, and every acknowledged pill is in the log', async () => {
    const own = await startIngest(namespace);
    await own.process.ready();
    const acknowledged: string[] = [];
    let isOver = false;
    let notOk = 0;
    const sender = async () => {
      while (!isOver) {
        const pill = pillOf();
        try {
          const { status } = await post(pill, { url: `${own.url}/api/pillole` });
          if (status === 200) acknowledged.push(pill.id);
          else notOk += 1;
        } catch {
          return; // Refused or cut: the outcome is unknown.
        }
      }
    };
    const senders = Array.from({ length: 16 }, sender);
    // A client in the middle of its body must not delay the stop.
    const slow = await openRaw(own.port);
    slow.write(postBytes(JSON.stringify(pillOf())).subarray(0, 150));
    await waitFor('some answers', () => acknowledged.length > 200);
    expect(await own.process.stop()).toBe(0);
    isOver = true;
    await Promise.all(senders);
    slow.destroy();
    expect(notOk).toBe(0);
    const inLog = new Set((await readPills(namespace)).map(({ id }) => id));
    expect(acknowledged.filter((id) => !inLog.has(id))).toEqual([]);
  });

  test('two instances side by side give distinct cursors', async () => {
    const other = await startIngest(namespace);
    try {
      await other.process.ready();
      const urls = [ingest.url, other.url].map((url) => `${url}/api/pillole`);
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) => post(pillOf(), { url: urls[i % 2]! })),
      );
      expect(answers.every(({ status }) => status === 200)).toBe(true);
      expect(new Set(answers.map(({ headers }) => headers['pill-cursor'])).size).toBe(100);
    } finally {
      await other.process.stop();
    }
  });
});
