import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { createClient } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { playCorpus } from '../../../testing/http-corpus.ts';
import {
  endTestServer,
  post,
  startTestServer,
  TEST_PASSWORDS,
  TEST_USER,
  type TestServer,
} from './testing/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await post(server, 'CREATE TABLE t (a Int64, b String) ENGINE = MergeTree ORDER BY a');
});
afterAll(async () => {
  await endTestServer(server);
  rmSync(server.folder, { recursive: true, force: true });
});

const count = async (where = '1') =>
  (await post(server, `SELECT count() FROM t WHERE ${where}`)).text.trim();

describe('statements', () => {
  test.each([
    ['SELECT 1', 200, '1\n'],
    ['SELECT 1 FORMAT JSONEachRow', 200, '{"1":1}\n'],
    ['', 400, 'Empty query'],
    ['SELECT (', 400, 'Code: 62.'],
    ['SELECT * FROM missing', 404, 'Code: 60.'],
    ['SET max_threads = 1', 501, 'SET is refused'],
    ['/* a */ use system', 501, 'USE is refused'],
    ['SELECT 1; SELECT 2', 400, 'Multi-statements'],
    ['INSERT INTO t SELECT 1, 2; DROP TABLE t', 400, 'Multi-statements'],
    ["INSERT INTO t VALUES (-1, 'x'); DROP TABLE t", 400, 'Multi-statements'],
  ])('%s → %d', async (sql, status, text) => {
    const answer = await post(server, sql);
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text)]);
    if (status !== 200) expect(answer.headers.get('x-clickhouse-exception-code')).toMatch(/^\d+$/);
  });

  test('GET only reads', async () => {
    const get = async (sql: string) =>
      (await fetch(`${server.url}/?query=${encodeURIComponent(sql)}`, { headers: TEST_USER }))
        .status;
    expect([await get('SELECT 1'), await get('DROP TABLE t')]).toEqual([200, 403]);
  });

  test('ping answers Ok.', async () => {
    expect(await (await fetch(`${server.url}/ping`)).text()).toBe('Ok.\n');
  });

  test('web pages are refused', async () => {
    expect((await post(server, 'SELECT 1', {}, { origin: 'http://example.org' })).status).toBe(403);
    const status = await new Promise((resolve) => {
      const headers = { ...TEST_USER, host: 'rebound.example.org' };
      request(`${server.url}/?query=SELECT+1`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).end();
    });
    expect(status).toBe(403);
  });

  test('a setting lasts for one statement', async () => {
    const sql = "SELECT getSetting('max_threads')";
    expect((await post(server, sql, { max_threads: '7' })).text).toBe('7\n');
    expect((await post(server, sql)).text).not.toBe('7\n');
  });
});

describe('passwords', () => {
  const status = async (search: string, headers: Record<string, string> = {}, body = 'SELECT 1') =>
    (await fetch(`${server.url}/${search}`, { method: 'POST', headers, body })).status;
  const basic = (text: string) => ({ authorization: `Basic ${btoa(text)}` });
  const { default: right, analyst } = TEST_PASSWORDS;

  test.each([
    ['the URL', `?user=default&password=${encodeURIComponent(right)}`, {}],
    ['headers', '', TEST_USER],
    ['Basic', '', basic(`default:${right}`)],
    ['Basic of the analyst', '', basic(`analyst:${analyst}`)],
    ['a password without a user', `?password=${encodeURIComponent(right)}`, {}],
  ])('accepted in %s', async (_, search, headers) => {
    expect(await status(search, headers)).toBe(200);
  });

  test.each([
    ['no password', '', {}],
    ['an empty password', '?user=default&password=', {}],
    ['the analyst without a password', '?user=analyst', {}],
    ['the password of the other user', '', basic(`default:${analyst}`)],
    ['an unknown user', '', basic(`root:${right}`)],
    ['a wrong header before the right URL', `?password=${encodeURIComponent(right)}`, basic('x:y')],
    ['a user without a password in Basic', '', basic('default')],
  ])('%s is refused', async (_, search, headers) => {
    const answer = await fetch(`${server.url}/${search}`, {
      method: 'POST',
      headers,
      body: "INSERT INTO FUNCTION file('stolen', 'TSV', 'a Int8') VALUES (1)",
    });
    expect([answer.status, answer.headers.get('x-clickhouse-exception-code')]).toEqual([
      403,
      '516',
    ]);
    expect(await answer.text()).not.toContain('secret');
  });

  test('a form cannot name another user', async () => {
    const form = new FormData();
    form.set('query', 'SELECT currentUser()');
    form.set('user', 'default');
    form.set('password', right);
    expect((await fetch(`${server.url}/`, { method: 'POST', body: form })).status).toBe(403);
    form.set('query', 'DROP TABLE t');
    expect((await post(server, form, { user: 'analyst' })).status).toBe(403);
  });
});

describe('parameters', () => {
  const sql = 'SELECT {text:String} AS text, {list:Array(Int64)} AS list FORMAT JSONEachRow';
  const expected = { text: "it's\t", list: ['1', '2'] };
  const params = {
    param_text: "it's\\t",
    param_list: '[1,2]',
    output_format_json_quote_64bit_integers: '1',
  };

  test('in the URL', async () => {
    expect(JSON.parse((await post(server, sql, params)).text)).toEqual(expected);
  });

  test('as form fields', async () => {
    const form = new FormData();
    form.set('query', sql);
    for (const [name, value] of Object.entries(params)) form.set(name, value);
    expect(JSON.parse((await post(server, form)).text)).toEqual(expected);
  });

  test('of statements that run at the same time do not mix', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        post(server, 'SELECT {n:Int64}', { param_n: String(i) }),
      ),
    );
    expect(answers.map(({ text }) => Number(text))).toEqual([...Array(40).keys()]);
  });
});

describe('inserts', () => {
  test('of the official client, streamed and compressed', async () => {
    const client = createClient({
      url: server.url,
      password: TEST_PASSWORDS.default,
      compression: { request: true, response: true },
    });
    const values = Array.from({ length: 5_000 }, (_, i) => ({ a: 10_000 + i, b: `b ${i}\n\n;` }));
    await client.insert({ table: 't', values, format: 'JSONEachRow' });
    const result = await client.query({
      query: 'SELECT a, b FROM t WHERE a >= {from:Int64} ORDER BY a',
      query_params: { from: 10_000 },
      format: 'JSONEachRow',
    });
    const rows = await result.json<{ a: string; b: string }>();
    expect(rows.map(({ a, b }) => ({ a: Number(a), b }))).toEqual(values);
    await expect(client.query({ query: 'SELECT * FROM missing' })).rejects.toMatchObject({
      code: '60',
      type: 'UNKNOWN_TABLE',
    });
    await client.close();
  });

  test('blank lines and statements inside rows are data', async () => {
    const rows = '{"a":20,"b":"x"}\n\n{"a":21,"b":"DROP TABLE t"}\n\n';
    expect((await post(server, `INSERT INTO t FORMAT JSONEachRow\n${rows}`)).status).toBe(200);
    expect(await count('a IN (20, 21)')).toBe('2');
  });

  test.each([
    ['identity', (rows: Buffer) => rows],
    ['gzip', gzipSync],
  ])('binary rows, %s', async (encoding, encode) => {
    const native = await fetch(
      `${server.url}/?query=${encodeURIComponent("SELECT 2570 + number AS a, '\\n\\n' AS b FROM numbers(50) FORMAT Native")}`,
      { headers: TEST_USER },
    );
    const body = encode(Buffer.from(await native.arrayBuffer()));
    const before = Number(await count("b = '\\n\\n'"));
    const search = { query: 'INSERT INTO t FORMAT Native' };
    const headers: Record<string, string> =
      encoding === 'identity' ? {} : { 'content-encoding': encoding };
    expect((await post(server, body, search, headers)).text).toBe('');
    expect(Number(await count("b = '\\n\\n'")) - before).toBe(50);
  });

  test('an insert is one block, and one invalid row rejects all of it', async () => {
    await post(server, 'CREATE TABLE blocks (a Int64) ENGINE = MergeTree ORDER BY a');
    const insert = { query: 'INSERT INTO blocks FORMAT JSONEachRow' };
    const rows = Array.from({ length: 1_200_000 }, (_, i) => `{"a":${i}}`);
    await post(server, rows.join('\n'), insert);
    const parts = "SELECT count(), sum(rows) FROM system.parts WHERE table = 'blocks' AND active";
    expect((await post(server, parts)).text).toBe('1\t1200000\n');
    const bad = await post(server, '{"a":1}\n{"a":"x"}\n', insert);
    expect(bad.status).toBe(400);
    expect((await post(server, parts)).text).toBe('1\t1200000\n');
  });

  test('a body over the limit is refused, and the server keeps running', async () => {
    const status = await new Promise((resolve, reject) => {
      const url = `${server.url}/?query=${encodeURIComponent('INSERT INTO t FORMAT TSV')}`;
      const sending = request(url, { method: 'POST', headers: TEST_USER }, (response) => {
        response.resume();
        resolve(response.statusCode);
        sending.destroy();
      });
      sending.on('error', reject);
      const chunk = Buffer.alloc(1024 * 1024, '1');
      let left = 260;
      const more = () => {
        while (left-- > 0) {
          if (!sending.write(chunk)) return void sending.once('drain', more);
        }
        sending.end();
      };
      more();
    });
    expect(status).toBe(413);
    expect(await count('0')).toBe('0');
  });
});

test('no request ends the server', async () => {
  const check = async () => expect((await post(server, 'SELECT 1')).text).toBe('1\n');
  const { url, child } = server;
  const owner = `user=default&password=${encodeURIComponent(TEST_PASSWORDS.default)}`;
  const paths = ['/', '/ping', '/?query=SELECT+1', `/?${owner}&query=SELECT+1`];
  await playCorpus({ url, paths, child, check });
  for (const name of ['%0d%0aX:%201', '%00', 'x'.repeat(1_000), '%C3%A9']) {
    const { status } = await fetch(`${url}/?${owner}&query=SELECT+1&query_id=${name}`);
    expect([name, status]).toEqual([name, 200]);
  }
  await check();
});

test('kill -9 right after the response loses nothing', async () => {
  const first = await startTestServer();
  await post(first, 'CREATE TABLE kept (a Int64) ENGINE = MergeTree ORDER BY a');
  for (let i = 0; i < 20; i++) {
    const rows = Array.from({ length: 100 }, (_, n) => `{"a":${i * 100 + n}}`).join('\n');
    const answer = await post(first, rows, { query: 'INSERT INTO kept FORMAT JSONEachRow' });
    expect(answer.status).toBe(200);
  }
  await endTestServer(first, 'SIGKILL');
  const second = await startTestServer(first.folder);
  const { text } = await post(second, 'SELECT count(), uniqExact(a) FROM kept');
  await endTestServer(second);
  rmSync(first.folder, { recursive: true, force: true });
  expect(text).toBe('2000\t2000\n');
});

test('a second server on the same folder explains why it ends', async () => {
  await expect(startTestServer(server.folder)).rejects.toThrow(
    'one process at a time may use a data folder',
  );
});
