import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import getPort from 'get-port';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openProducer } from '../../lib/kafka/producer.ts';
import { readAll } from '../../lib/kafka/read-all.ts';
import {
  countPillsInLog,
  openRaw,
  postBytes,
  sendRaw,
  startIngest,
  type TestIngest,
} from '../../lib/testing/ingest.ts';
import { createNamespace, type Namespace } from '../../lib/testing/namespace.ts';
import { makePill } from '../../lib/testing/pills.ts';
import { startProcess } from '../../lib/testing/process.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { createDecoder, createEncoder } from '../../schemas/avro.ts';
import { partitionOf } from '../../schemas/partition.ts';
import { topicName } from '../../schemas/topics.ts';

let namespace: Namespace;
let ingest: TestIngest;
const agent = new Agent({ connections: 64, pipelining: 1 });

beforeAll(async () => {
  namespace = await createNamespace();
  ingest = await startIngest(namespace);
  await ingest.process.ready();
});
afterAll(async () => {
  await agent.close();
  await ingest?.process.stop();
});

const pillOf = (fields: object = {}) => ({
  id: randomUUID(),
  timestamp: new Date().toISOString(),
  symbol: '7203.T',
  gross_spread_percent: 0.125,
  market_state: 'open',
  confidence: 87.5,
  ...fields,
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

async function post(
  body: unknown,
  { url = `${ingest.url}/api/pillole`, type = 'application/json', headers = {} } = {},
): Promise<Answer> {
  const answer = await request(url, {
    method: 'POST',
    headers: { 'content-type': type, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    dispatcher: agent,
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, text, json: JSON.parse(text) };
}

async function readPills() {
  const { client, schemas, name } = namespace;
  await schemas.register('pills');
  const decoder = createDecoder('pill', schemas.writerSchemas);
  const records = await readAll(client, topicName(name, 'pills'));
  return records.map(({ partition, offset, key, value, appendedAt }) => {
    const decoded = decoder.decode(value);
    if (!('ok' in decoded) || !decoded.ok) throw new Error(JSON.stringify(decoded));
    return { cursor: `${partition}-${offset}`, key: key?.toString(), appendedAt, ...decoded.value };
  });
}

describe('one pill', () => {
  test('ok means: in the log, at the cursor that the answer names', async () => {
    const pill = pillOf({ market_state: '昼休み', gross_spread_percent: -0, confidence: 1e-7 });
    const { status, headers, text } = await post(pill);
    expect([status, text]).toEqual([200, '{"status":"ok"}']);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'api-version': '1.0',
      'server-timing': expect.stringMatching(/^parse;dur=[\d.]+, log;dur=[\d.]+$/),
    });
    expect(headers['idempotent-replayed']).toBeUndefined();
    const record = (await readPills()).find(({ id }) => id === pill.id)!;
    expect(record).toMatchObject({
      cursor: headers['pill-cursor'],
      key: '7203.T',
      timestamp: Date.parse(pill.timestamp) * 1000,
      symbol: '7203.T',
      gross_spread_percent: 0,
      market_state: '昼休み',
      confidence: 1e-7,
      source: 'http',
      kind: null,
    });
    expect(Object.is(record.gross_spread_percent, 0)).toBe(true);
    expect(Math.abs(record.received_at! - record.appendedAt)).toBeLessThan(5_000_000);
    expect(record.cursor.startsWith(`${partitionOf('7203.T', 3)}-`)).toBe(true);
  });

  test('the same pill again is told so, and is in the log once', async () => {
    const pill = pillOf({ timestamp: '2026-01-01T00:00:00.5Z' });
    const first = await post(pill);
    const count = await countPillsInLog(namespace);
    // Other texts of the same values are the same pill.
    const same = { ...pill, timestamp: '2026-01-01T00:00:00.500000+00:00' };
    for (const again of [pill, same]) {
      const { status, text, headers } = await post(again);
      expect([status, text]).toEqual([200, '{"status":"ok"}']);
      expect(headers['idempotent-replayed']).toBe('true');
      expect(headers['pill-cursor']).toBe(first.headers['pill-cursor']);
    }
    expect(await countPillsInLog(namespace)).toBe(count);
  });

  test('the same id with other content is a conflict; of another symbol it is not', async () => {
    const pill = pillOf();
    const { headers } = await post(pill);
    const conflict = await post({ ...pill, confidence: 1 });
    expect(conflict.status).toBe(409);
    expect(conflict.json).toMatchObject({
      code: 'id_conflict',
      stored: 'no',
      retry: 'never',
      stored_cursor: headers['pill-cursor'],
    });
    expect((await post({ ...pill, symbol: '6758.T' })).headers['idempotent-replayed']).toBe(
      undefined,
    );
  });

  test('of many at once with one identity, one is in the log', async () => {
    const pill = pillOf();
    const count = await countPillsInLog(namespace);
    const answers = await Promise.all(Array.from({ length: 30 }, () => post(pill)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(answers.map(({ headers }) => headers['pill-cursor'])).size).toBe(1);
    const fresh = answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined);
    expect(fresh.length).toBe(1);
    expect(await countPillsInLog(namespace)).toBe(count + 1);
  });

  test('of two at once with one identity and two contents, one is refused', async () => {
    const pill = pillOf();
    const answers = await Promise.all([post(pill), post({ ...pill, confidence: 1 })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test('200 at once share few batches, and each has a place of its own', async () => {
    const batches = async () => {
      const text = await (await fetch(`${ingest.process.opsUrl}/metrics`)).text();
      const line = /pillole_produce_batch_seconds_count\{outcome="ok"\} (\d+)/.exec(text);
      return Number(line?.[1]);
    };
    const before = await batches();
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => post(pillOf({ symbol: `S${i % 20}` }))),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(answers.map(({ headers }) => headers['pill-cursor'])).size).toBe(200);
    expect((await batches()) - before).toBeLessThan(100);
  });
});

describe('a batch', () => {
  const url = () => `${ingest.url}/api/pillole/batch`;
  const postBatch = (rows: unknown) => post(rows, { url: url() });
  const ndjson = (text: string) => post(text, { url: url(), type: 'application/x-ndjson' });
  const clean = { status: 'ok', replayed: 0, refused: 0, unknown: 0, results: [] };

  test('1,000 pills in one request, then the same again', async () => {
    const rows = Array.from({ length: 1_000 }, (_, i) => pillOf({ symbol: `B${i % 50}` }));
    const count = await countPillsInLog(namespace);
    const first = await postBatch(rows);
    expect([first.status, first.json]).toEqual([200, { ...clean, ok: 1_000 }]);
    const again = await postBatch(rows);
    expect(again.json).toEqual({ ...clean, ok: 0, replayed: 1_000 });
    expect(await countPillsInLog(namespace)).toBe(count + 1_000);
  });

  test('each row has a fate of its own', async () => {
    const [a, b] = [pillOf(), pillOf()];
    const text = [
      JSON.stringify(a),
      JSON.stringify({ ...b, symbol: 'x' }),
      JSON.stringify(a),
      JSON.stringify({ ...a, confidence: 1 }),
      'null',
      JSON.stringify(b).replace('}', ',"id":"twice"}'),
      JSON.stringify(b),
    ];
    const count = await countPillsInLog(namespace);
    const refused = (index: number, id: string | null, ...errors: [string, string][]) => ({
      index,
      id,
      status: 'refused',
      errors: errors.map(([pointer, code]) => ({ pointer, code, detail: expect.any(String) })),
    });
    const expected = {
      status: 'partial',
      ok: 2,
      replayed: 1,
      refused: 4,
      unknown: 0,
      results: [
        refused(1, b.id, ['#/symbol', 'symbol_malformed']),
        refused(3, a.id, ['#/id', 'id_conflict']),
        refused(4, null, ['#', 'not_an_object']),
        refused(5, 'twice', ['#/id', 'duplicate_key']),
      ],
    };
    expect((await postBatch(`[${text.join()}]`)).json).toEqual(expected);
    expect(await countPillsInLog(namespace)).toBe(count + 2);
    const lines = await ndjson(`\r\n${text.join('\r\n \r\n')}`);
    expect(lines.json).toEqual({ ...expected, ok: 0, replayed: 3 });
    expect(await countPillsInLog(namespace)).toBe(count + 2);
  });

  test('a line that is no JSON refuses that line only', async () => {
    const [a, b] = [pillOf(), pillOf()];
    const answer = await ndjson(`${JSON.stringify(a)}\n{"id":\n${JSON.stringify(b)}`);
    expect(answer.json).toMatchObject({ status: 'partial', ok: 2, refused: 1 });
    expect(answer.json.results).toMatchObject([{ index: 1, errors: [{ code: 'json_syntax' }] }]);
  });

  test.each<[string, string, string, string]>([
    ['an object', 'application/json', JSON.stringify(pillOf()), 'not_an_array'],
    ['broken', 'application/json', '[{]', 'json_syntax'],
    ['empty', 'application/json', '[]', 'batch_empty'],
    ['1,001 rows', 'application/json', `[${'0,'.repeat(1_000)}0]`, 'batch_too_long'],
    ['1,001 lines', 'application/x-ndjson', '0\n'.repeat(1_001), 'batch_too_long'],
    ['no line', 'application/x-ndjson', '\n\r\n \n', 'batch_empty'],
    ['deep', 'application/json', '['.repeat(500_000) + ']'.repeat(500_000), 'json_too_deep'],
  ])('%s (%s) is refused as a whole', async (_name, type, body, code) => {
    const count = await countPillsInLog(namespace);
    const answer = await post(body, { url: url(), type });
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({
      code: 'batch_invalid',
      stored: 'no',
      errors: [{ pointer: '#', code }],
    });
    expect(await countPillsInLog(namespace)).toBe(count);
  });

  test('1 MiB + 1 is too much', async () => {
    const bytes = postBytes(' '.repeat(2 ** 20 + 1), undefined, '/api/pillole/batch');
    expect((await sendRaw(ingest.port, bytes)).status).toBe(413);
  });
});

describe('symbols are bounded', () => {
  test('a new one over the bound is 503, a known one is not, also after a restart', async () => {
    const own = await createNamespace({ partitions: 1, symbols_max: 3 });
    // What the latest view knows counts from the start.
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

  test('asked for once there is a file, and the name becomes the source', async () => {
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
      const record = (await readPills()).find(({ id }) => id === pill.id);
      expect(record?.source).toBe('tokyo-1');
      expect(closed.process.output()).not.toContain('gen_');
    } finally {
      await closed.process.stop();
    }
  });

  test('without any, an address that others can reach is one sentence and an end', async () => {
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
  test('without a broker it lives, says why, and stores nothing', async () => {
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

  test('SIGTERM amid posts: it ends with 0, and every acknowledged pill is in the log', async () => {
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
          return; // refused or cut: the outcome is unknown
        }
      }
    };
    const senders = Array.from({ length: 16 }, sender);
    // One that is in the middle of its body must not hold the process up.
    const slow = await openRaw(own.port);
    slow.write(postBytes(JSON.stringify(pillOf())).subarray(0, 150));
    await waitFor('some answers', () => acknowledged.length > 200);
    expect(await own.process.stop()).toBe(0);
    isOver = true;
    await Promise.all(senders);
    slow.destroy();
    expect(notOk).toBe(0);
    const inLog = new Set((await readPills()).map(({ id }) => id));
    expect(acknowledged.filter((id) => !inLog.has(id))).toEqual([]);
  });

  test('two instances side by side: places are distinct, a repeat over both is harmless', async () => {
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
