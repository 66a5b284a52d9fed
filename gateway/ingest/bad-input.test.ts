import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  countPillsInLog,
  jsonOf,
  postBytes,
  startIngest,
  type TestIngest,
} from '../../testing/ingest-process.ts';
import { createNamespace, type Namespace } from '../../testing/namespace.ts';
import { openRaw, type RawAnswer, sendRaw } from '../../testing/raw-http.ts';
import { waitFor } from '../../testing/wait.ts';
import { pillOf } from './testing/post.ts';

let namespace: Namespace;
let ingest: TestIngest;
let stored = 0;

beforeAll(async () => {
  namespace = await createNamespace();
  ingest = await startIngest(namespace);
  await ingest.process.ready();
});
afterAll(() => ingest?.process.stop());

const textOf = (fields: object = {}) => JSON.stringify(pillOf(fields));
/** The text of a valid pill in which `field` has the JSON `text` as its value. */
const withText = (field: string, text: string) =>
  textOf({ [field]: '@' }).replace('"@"', () => text);
const without = (field: string) => textOf({ [field]: undefined });

/** Checks that nothing of the previous request is in the log, and that the next pill passes. */
async function expectUnaffected(): Promise<void> {
  expect(await countPillsInLog(namespace)).toBe(stored);
  const answer = await sendRaw(ingest.port, postBytes(textOf()));
  expect(answer).toMatchObject({ status: 200, body: '{"status":"ok"}' });
  stored += 1;
}

function expectProblem(answer: RawAnswer, status: number, code: string): void {
  expect([answer.status, jsonOf(answer).code]).toEqual([status, code]);
  expect(answer.headers['content-type']).toBe('application/problem+json');
  expect(answer.headers['api-version']).toBe('1.0');
  expect(jsonOf(answer)).toMatchObject({ stored: 'no', retry: expect.any(String) });
  expect(answer.body).not.toMatch(/\.(?:js|ts):\d|node_modules|at .*\(/);
}

describe('a body that is not a pill is refused with every fault', () => {
  const good = textOf();
  test.each<[string, string | Buffer, string[]]>([
    ['empty', '', ['# json_syntax']],
    ['null', 'null', ['# not_an_object']],
    ['array', '[]', ['# not_an_object']],
    ['text', '"pill"', ['# not_an_object']],
    ['truncated', good.slice(0, -5), ['# json_syntax']],
    ['two documents', good + good, ['# json_syntax']],
    ['trailing comma', good.replace('}', ',}'), ['# json_syntax']],
    ['NaN', withText('confidence', 'NaN'), ['# json_syntax']],
    ['leading zero', withText('confidence', '01'), ['# json_syntax']],
    ['1e999', withText('gross_spread_percent', '1e999'), ['#/gross_spread_percent not_finite']],
    ['duplicate key', good.replace('}', ',"id":"x"}'), ['#/id duplicate_key']],
    [
      'duplicate key by an escape',
      good.replace('}', String.raw`,"\u0073ymbol":"6758.T"}`),
      ['#/symbol duplicate_key'],
    ],
    ['__proto__', good.replace('}', ',"__proto__":{}}'), ['#/__proto__ forbidden_key']],
    ['10,000 nested arrays, not closed', '['.repeat(10_000), ['# json_too_deep']],
    [
      '8,000 nested arrays',
      '['.repeat(8_000) + ']'.repeat(8_000),
      ['# json_too_deep', '# not_an_object'],
    ],
    [
      'deep inside a field',
      withText('id', '['.repeat(7_000) + ']'.repeat(7_000)),
      ['# json_too_deep', '#/id not_a_string'],
    ],
    ['0xFF', Buffer.concat([Buffer.from(good), Buffer.from([0xff])]), ['# invalid_utf8']],
    ['UTF-16', Buffer.from(good, 'utf16le'), ['# json_syntax']],
    ['UTF-16 with BOM', Buffer.from(`\ufeff${good}`, 'utf16le'), ['# invalid_utf8']],
    ['BOM', `\ufeff${good}`, ['# byte_order_mark']],
    ['lone surrogate', withText('id', String.raw`"\ud800"`), ['#/id lone_surrogate']],
    ['U+FFFD', textOf({ id: 'p\ufffd' }), ['#/id invalid_utf8']],
    ['NUL in symbol', withText('symbol', String.raw`"7203\u0000"`), ['#/symbol symbol_malformed']],
    [
      '10,000-character symbol',
      textOf({ symbol: 'A'.repeat(10_000) }),
      ['#/symbol symbol_malformed'],
    ],
    ['lower-case symbol', textOf({ symbol: '7203.t' }), ['#/symbol symbol_malformed']],
    ['empty id', textOf({ id: '' }), ['#/id id_malformed']],
    ['id of 129', textOf({ id: 'x'.repeat(129) }), ['#/id id_malformed']],
    ['id as a number', textOf({ id: 7 }), ['#/id not_a_string']],
    [
      'one hour ahead',
      textOf({ timestamp: new Date(Date.now() + 3.6e6).toISOString() }),
      ['#/timestamp timestamp_in_future'],
    ],
    [
      'without zone',
      textOf({ timestamp: '2026-01-01T00:00:00.5' }),
      ['#/timestamp timestamp_no_zone'],
    ],
    [
      'another zone',
      textOf({ timestamp: '2026-01-01T09:00:00+09:00' }),
      ['#/timestamp timestamp_not_utc'],
    ],
    [
      'nanoseconds',
      textOf({ timestamp: '2026-01-01T00:00:00.123456789Z' }),
      ['#/timestamp timestamp_too_precise'],
    ],
    ['13-digit number', textOf({ timestamp: 1_763_600_000_123 }), ['#/timestamp not_a_string']],
    [
      '30 February',
      textOf({ timestamp: '2026-02-30T00:00:00Z' }),
      ['#/timestamp timestamp_malformed'],
    ],
    ['confidence 101', textOf({ confidence: 101 }), ['#/confidence out_of_range']],
    ['confidence below 0', textOf({ confidence: -0.1 }), ['#/confidence out_of_range']],
    ['confidence as text', textOf({ confidence: '0.5' }), ['#/confidence not_a_number']],
    ['confidence null', textOf({ confidence: null }), ['#/confidence not_a_number']],
    ['spread 1e7', textOf({ gross_spread_percent: 1e7 }), ['#/gross_spread_percent out_of_range']],
    [
      'state of 33',
      textOf({ market_state: 'x'.repeat(33) }),
      ['#/market_state market_state_malformed'],
    ],
    ['missing field', without('confidence'), ['#/confidence missing_field']],
    ['extra field', textOf({ kind: null }), ['#/kind unknown_field']],
    [
      'many faults at once',
      '{"id":1,"id":"","timestamp":"x","symbol":"a b","gross_spread_percent":1e999,"x/~":0}',
      [
        '#/confidence missing_field',
        '#/gross_spread_percent not_finite',
        '#/id duplicate_key',
        '#/id id_malformed',
        '#/market_state missing_field',
        '#/symbol symbol_malformed',
        '#/timestamp timestamp_malformed',
        '#/x~1~0 unknown_field',
      ],
    ],
  ])('%s', async (_name, body, faults) => {
    const answer = await sendRaw(ingest.port, postBytes(body));
    expectProblem(answer, 400, 'pill_invalid');
    const errors = jsonOf(answer).errors as { pointer: string; code: string; detail: string }[];
    const found = errors.map(({ pointer, code }) => `${pointer} ${code}`).sort();
    expect(found).toEqual(faults);
    for (const { detail } of errors) expect(detail).toMatch(/\S.*\S/);
    await expectUnaffected();
  });

  test('16 KiB of unknown fields give an answer below 16 KiB', async () => {
    const keys = Array.from({ length: 1_500 }, (_, i) => `"k${i}":0`).join(',');
    const answer = await sendRaw(ingest.port, postBytes(`{${keys}}`));
    expectProblem(answer, 400, 'pill_invalid');
    expect(answer.body.length).toBeLessThan(16 * 1024);
  });
});

describe('HTTP requests outside the contract', () => {
  const body = textOf();
  const json = 'Content-Type: application/json';
  const padded = (bytes: number) => body + ' '.repeat(bytes - body.length);
  const chunked = (text: string) =>
    `POST /api/pillole HTTP/1.1\r\nHost: localhost\r\n${json}\r\nTransfer-Encoding: chunked\r\n\r\n` +
    `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
  const head = (lines: string[], method = 'POST', path = '/api/pillole') =>
    `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;

  test.each<[string, string | Buffer, number, string]>([
    ['no Content-Type', postBytes(body, []), 415, 'media_type_unsupported'],
    ['no Content-Type, no body', head(['Host: localhost']), 415, 'media_type_unsupported'],
    ['text/plain', postBytes(body, ['Content-Type: text/plain']), 415, 'media_type_unsupported'],
    ['a parameter', postBytes(body, [`${json}\t;x`]), 415, 'media_type_unsupported'],
    ['utf-16', postBytes(body, [`${json};charset=utf-16`]), 415, 'media_type_unsupported'],
    ['gzip', postBytes(body, [json, 'Content-Encoding: gzip']), 415, 'media_type_unsupported'],
    ['two Content-Type', postBytes(body, [json, json]), 400, 'http_malformed'],
    ['16 KiB + 1', postBytes(padded(16 * 1024 + 1)), 413, 'body_too_large'],
    ['16 KiB + 1 in chunks', chunked(padded(16 * 1024 + 1)), 413, 'body_too_large'],
    [
      '1 GiB announced, nothing sent',
      head(['Host: localhost', json, `Content-Length: ${2 ** 30}`]),
      413,
      'body_too_large',
    ],
    [
      '1 GiB announced, waiting for 100',
      head(['Host: localhost', json, 'Expect: 100-continue', `Content-Length: ${2 ** 30}`]),
      413,
      'body_too_large',
    ],
    [
      'another expectation',
      postBytes(body, [json, 'Expect: a-miracle']),
      417,
      'expectation_failed',
    ],
    [
      'PUT',
      `${head(['Host: localhost', json, 'Content-Length: 2'], 'PUT')}{}`,
      405,
      'method_not_allowed',
    ],
    ['GET', head(['Host: localhost'], 'GET'), 405, 'method_not_allowed'],
    ['OPTIONS', head(['Host: localhost'], 'OPTIONS'), 405, 'method_not_allowed'],
    ['TRACE', head(['Host: localhost'], 'TRACE'), 405, 'method_not_allowed'],
    ['PROPFIND', head(['Host: localhost'], 'PROPFIND'), 405, 'method_not_allowed'],
    ['CONNECT', head(['Host: localhost'], 'CONNECT', 'x:1'), 405, 'method_not_allowed'],
    [
      'GET of a batch',
      head(['Host: localhost'], 'GET', '/api/pillole/batch'),
      405,
      'method_not_allowed',
    ],
    ['another path', postBytes(body, [json], '/api/pillole/'), 404, 'not_found'],
    ['path of the API', head(['Host: localhost'], 'GET', '/api/pills/latest'), 404, 'not_found'],
    ['a broken escape', postBytes(body, [json], '/api/%zz'), 400, 'http_malformed'],
    ['two Hosts', postBytes(body, [json, 'Host: y']), 400, 'http_malformed'],
    [
      'no Host',
      `POST /api/pillole HTTP/1.1\r\n${json}\r\nContent-Length: 2\r\n\r\n{}`,
      400,
      'http_malformed',
    ],
    ['two lengths', postBytes(body, [json, 'Content-Length: 1']), 400, 'http_malformed'],
    [
      'length and chunks',
      postBytes(body, [json, 'Transfer-Encoding: chunked']),
      400,
      'http_malformed',
    ],
    [
      'negative length',
      head(['Host: localhost', json, 'Content-Length: -1']),
      400,
      'http_malformed',
    ],
    ['no HTTP at all', 'hello\r\n\r\n', 400, 'http_malformed'],
    ['a space before the colon', head(['Host : x']), 400, 'http_malformed'],
    [
      'a header line of 20 kB',
      postBytes(body, [json, `X: ${'x'.repeat(20_000)}`]),
      431,
      'headers_too_large',
    ],
    [
      '2,001 headers',
      postBytes(body, [json, ...Array.from({ length: 2_001 }, (_, i) => `x${i}:`)]),
      431,
      'headers_too_large',
    ],
    [
      '65 headers',
      postBytes(body, [json, ...Array.from({ length: 65 }, (_, i) => `x${i}:`)]),
      431,
      'headers_too_large',
    ],
  ])('%s', async (_name, bytes, status, code) => {
    const answer = await sendRaw(ingest.port, bytes);
    expectProblem(answer, status, code);
    if (status === 405 && !String(_name).startsWith('CONNECT')) {
      expect(answer.headers.allow).toBe('POST');
    }
    await expectUnaffected();
  });

  test.each([
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'Application/Json; Charset=Utf-8',
  ])('%s passes', async (type) => {
    const answer = await sendRaw(ingest.port, postBytes(textOf(), [`Content-Type: ${type}`]));
    expect(answer.status).toBe(200);
    stored += 1;
  });

  test('a body of exactly 16 KiB passes, in one piece, in chunks, and cut anywhere', async () => {
    const exact = () => textOf().padEnd(16 * 1024, ' ');
    expect((await sendRaw(ingest.port, postBytes(exact()))).status).toBe(200);
    expect((await sendRaw(ingest.port, chunked(exact()))).status).toBe(200);
    const connection = await openRaw(ingest.port);
    for (const byte of postBytes(textOf({ market_state: '昼休み' }))) {
      connection.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await connection.answer()).status).toBe(200);
    connection.destroy();
    stored += 3;
  });

  test('a 413 arrives, then its connection is closed', async () => {
    const connection = await openRaw(ingest.port);
    connection.write(postBytes('x'.repeat(900_000)));
    const answer = await connection.answer();
    expectProblem(answer, 413, 'body_too_large');
    expect(answer.headers.connection).toBe('close');
    await connection.ended;
    await expectUnaffected();
  });

  test('garbage after a good request does not take the answer of that request', async () => {
    const connection = await openRaw(ingest.port);
    connection.write(
      Buffer.concat([postBytes(textOf()), postBytes(textOf()), Buffer.from('#!\r\n')]),
    );
    expect((await connection.answer()).status).toBe(200);
    expect((await connection.answer()).status).toBe(200);
    expectProblem(await connection.answer(), 400, 'http_malformed');
    await connection.ended;
    stored += 2;
    await expectUnaffected();
  });

  test('one byte a second in body or headers ends in 408', async () => {
    const drip = async (bytes: Buffer, first: number) => {
      const connection = await openRaw(ingest.port);
      connection.write(bytes.subarray(0, first));
      let isOver = false;
      const answer = connection.answer().finally(() => {
        isOver = true;
      });
      for (let at = first; !isOver && at < bytes.length; at += 1) {
        connection.write(bytes.subarray(at, at + 1));
        await Promise.race([sleep(1_000), answer]);
      }
      const got = await answer;
      await connection.ended;
      connection.destroy();
      return got;
    };
    const bytes = postBytes(textOf());
    const [inBody, inHeaders] = await Promise.all([drip(bytes, 110), drip(bytes, 20)]);
    expectProblem(inBody, 408, 'request_timeout');
    expectProblem(inHeaders, 408, 'request_timeout');
    await expectUnaffected();
  });

  test('a client that disconnects within its body leaves no trace', async () => {
    for (let i = 0; i < 20; i += 1) {
      const connection = await openRaw(ingest.port);
      connection.write(postBytes(textOf()).subarray(0, 150 + i));
      connection.destroy();
    }
    await expectUnaffected();
    await waitFor('the requests to be released', async () => {
      const { body: metrics } = await fetchText(`${ingest.process.opsUrl}/metrics`);
      const traces = ['pillole_ingest_requests_in_flight', 'pillole_ingest_bodies_bytes'];
      return traces.every((name) => metrics.includes(`${name} 0`)) || metrics;
    });
  });
});

async function fetchText(url: string): Promise<{ body: string }> {
  return { body: await (await fetch(url)).text() };
}
