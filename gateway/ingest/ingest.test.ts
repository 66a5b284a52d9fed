import { beforeAll, describe, expect, test } from 'vitest';
import { partitionOf } from '../../schemas/partition.ts';
import { countPillsInLog, postBytes, type TestIngest } from '../../testing/ingest-process.ts';
import type { Namespace } from '../../testing/namespace.ts';
import { sendRaw } from '../../testing/raw-http.ts';
import { pillOf, readPills, useIngest } from './testing/post.ts';

const { opened, post } = useIngest();
let namespace: Namespace;
let ingest: TestIngest;

beforeAll(() => {
  ({ namespace, ingest } = opened());
});

describe('one pill', () => {
  test('ok means that the pill is in the log, at the cursor of the answer', async () => {
    const pill = pillOf({ market_state: '昼休み', gross_spread_percent: -0, confidence: 1e-7 });
    const { status, headers, text } = await post(pill);
    expect([status, text]).toEqual([200, '{"status":"ok"}']);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'api-version': '1.0',
      'server-timing': expect.stringMatching(/^parse;dur=[\d.]+, log;dur=[\d.]+$/),
    });
    expect(headers['idempotent-replayed']).toBeUndefined();
    const record = (await readPills(namespace)).find(({ id }) => id === pill.id)!;
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

  test('a repeated pill is marked as replayed and is in the log once', async () => {
    const pill = pillOf({ timestamp: '2026-01-01T00:00:00.5Z' });
    const first = await post(pill);
    const count = await countPillsInLog(namespace);
    // Different texts of the same values are the same pill.
    const same = { ...pill, timestamp: '2026-01-01T00:00:00.500000+00:00' };
    for (const again of [pill, same]) {
      const { status, text, headers } = await post(again);
      expect([status, text]).toEqual([200, '{"status":"ok"}']);
      expect(headers['idempotent-replayed']).toBe('true');
      expect(headers['pill-cursor']).toBe(first.headers['pill-cursor']);
    }
    expect(await countPillsInLog(namespace)).toBe(count);
  });

  test('the same id with other content is a conflict, except for another symbol', async () => {
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

  test('of many simultaneous pills with one identity, one is in the log', async () => {
    const pill = pillOf();
    const count = await countPillsInLog(namespace);
    const answers = await Promise.all(Array.from({ length: 30 }, () => post(pill)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(answers.map(({ headers }) => headers['pill-cursor'])).size).toBe(1);
    const fresh = answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined);
    expect(fresh.length).toBe(1);
    expect(await countPillsInLog(namespace)).toBe(count + 1);
  });

  test('of two simultaneous pills with one identity and two contents, one is refused', async () => {
    const pill = pillOf();
    const answers = await Promise.all([post(pill), post({ ...pill, confidence: 1 })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test('200 simultaneous pills share few batches, and each has its own cursor', async () => {
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

  test('each row has its own outcome', async () => {
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

  test('a line that is not JSON is refused alone', async () => {
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

  test('1 MiB + 1 byte is too large', async () => {
    const bytes = postBytes(' '.repeat(2 ** 20 + 1), undefined, '/api/pillole/batch');
    expect((await sendRaw(ingest.port, bytes)).status).toBe(413);
  });
});
