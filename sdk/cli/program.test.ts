import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { endRuns, runCli } from '../testing/run-program.ts';
import { pillAt, pillFrame, sendHandover } from '../testing/scripted-frames.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { runProgram } from './program.ts';

const fixture = useScriptedServer();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-cli-'));
});
afterEach(async () => {
  endRuns();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a command line to its end, in this process. */
async function pillole(args: readonly string[], env: Record<string, string> = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const exit = await runProgram({ env, folder, stdout, stderr, signal }, args);
  const [out, err] = await Promise.all([stdout, stderr].map((one) => text(one.end())));
  return { code: EXIT_CODES[exit].code, stdout: out!, stderr: err! };
}

const here = () => ({ PILLOLE_API_URL: fixture.server.httpUrl, PILLOLE_KEY: 'pil_live_key' });

const PAST = { timestamp: '2020-01-01T00:00:00.000000Z' };
const LATEST = { data: pillAt(5, 4, PAST), position: 'e1:0-5' };
const MANY = {
  data: { '7203.T': pillAt(5, 4, PAST) },
  errors: { 'X.T': { code: 'no_pill', detail: 'No pill of this symbol was ever received.' } },
  position: 'e1:0-5',
};
const STALE = {
  subject: { symbol: '7203.T' },
  checked_at: '2026-11-20T02:45:00Z',
  verdict: 'stale',
  usable: false,
  valid_until: '2026-11-20T03:30:00Z',
  age_ms: 900_000,
  reasons: [{ code: 'pill_too_old', detail: '900 s old, limit 5 s' }],
};

describe('rejected', () => {
  const row = (number: number) => ({
    at: `2026-11-20T01:02:0${number}.000000Z`,
    origin: `http:run-${number}`,
    channel: 'http',
    source: 'desk-1',
    code: 'pill_invalid',
    fault: 'missing_field',
    reason: '#/id: `id` is required.',
    body: '{"symbol":"7203.T"}\u0007',
    body_bytes: 20,
  });
  const env = () => ({
    PILLOLE_API_URL: fixture.server.httpUrl,
    PILLOLE_GENERATOR_TOKEN: 'gen_token',
  });

  test('prints what was refused, oldest first, with the token of the generator', async () => {
    const sent: unknown[] = [];
    fixture.server.answer((_, { headers }) => {
      sent.push(headers.authorization, headers['x-api-key']);
      return { body: { data: [row(2), row(1)], next: null } };
    });
    const { code, stdout } = await pillole(['rejected', '--count', '2'], env());
    expect([code, sent]).toEqual([0, ['Bearer gen_token', undefined]]);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.slice(0, 27))).toEqual([row(1).at, row(2).at]);
    expect(lines[0]).toMatch(
      /desk-1 {2}http {2}pill_invalid {2}#\/id: .+ {2}\{"symbol":"7203.T"\}\ufffd$/,
    );
    const json = await pillole(['rejected', '--json', '-n', '1'], env());
    expect(json.stdout.trimEnd()).toBe(JSON.stringify(row(2)));
  });

  test('--follow prints each new row once, also over pages, and older ones not at all', async () => {
    const list = [row(2), row(1), row(0)];
    fixture.server.answer(({ searchParams }) => {
      const before = searchParams.get('before');
      const from = before === null ? 0 : list.findIndex(({ origin }) => origin === before) + 1;
      const data = list.slice(from, from + 2);
      const next = `/api/generator/rejected?before=${data[1]?.origin}`;
      return { body: { data, next: data.length < 2 ? null : next } };
    });
    const run = runCli(['rejected', '--follow', '--json', '-n', '1'], { env: env() });
    await expect.poll(() => run.json().length, { timeout: 60_000 }).toBe(1);
    list.unshift(row(6), row(5), row(4), row(3));
    await expect.poll(() => run.json().length, { timeout: 60_000 }).toBe(5);
    list.unshift(row(7));
    await expect.poll(() => run.json().length, { timeout: 60_000 }).toBe(6);
    run.child.kill('SIGINT');
    expect(await run.exited).toBe(130);
    const numbers = run.json().map(({ origin }) => String(origin).at(-1));
    expect(numbers.join('')).toBe('234567');
  });

  test('a refused token names what to set', async () => {
    const problem = { type: '/x', title: 'A generator credential is required' };
    fixture.server.answer(() => ({
      status: 401,
      body: { ...problem, code: 'credential_missing' },
    }));
    const { code, stderr } = await pillole(['rejected'], {
      PILLOLE_API_URL: fixture.server.httpUrl,
    });
    expect([code, stderr]).toEqual([3, expect.stringContaining('PILLOLE_GENERATOR_TOKEN')]);
  });
});

describe('latest', () => {
  test('one symbol, as a table and as JSON', async () => {
    fixture.server.answer(() => ({ body: LATEST }));
    const table = await pillole(['latest', '7203.T'], here());
    expect(table).toMatchObject({ code: 0, stderr: '' });
    expect(table.stdout.split('\n')[0]).toMatch(/^TIME \(UTC\) +SYMBOL +SPREAD % +STATE +CONF/);
    expect(table.stdout.split('\n')[1]).toMatch(/^2020-01-01 00:00:00.000000 +7203.T +0.125 +open/);
    const json = await pillole(['latest', '7203.T', '--json'], here());
    expect(JSON.parse(json.stdout)).toEqual(LATEST);
  });

  test('several symbols: those without a pill are named and set the exit code', async () => {
    fixture.server.answer(() => ({ body: MANY }));
    const { code, stdout, stderr } = await pillole(['latest', '7203.T', 'X.T'], here());
    expect(code).toBe(6);
    expect(stdout).toContain('7203.T');
    expect(stderr).toBe('X.T: No pill of this symbol was ever received. (no_pill)\n');
    expect(fixture.server.requests).toEqual(['/api/pills/latest?symbols=7203.T%2CX.T']);
  });
});

describe('verify', () => {
  test('not usable: the reasons and exit code 6; usable: exit code 0', async () => {
    fixture.server.answer(() => ({ body: STALE }));
    const { code, stdout } = await pillole(['verify', '7203.T'], here());
    expect(code).toBe(6);
    expect(stdout.split('\n')[1]).toBe(
      '7203.T  no      stale      15 min  2026-11-20T03:30:00Z  pill_too_old (900 s old, limit 5 s)',
    );
    const good = { ...STALE, verdict: 'verified', usable: true, reasons: [] };
    fixture.server.answer(() => ({ body: good }));
    expect((await pillole(['verify', '7203.T'], here())).code).toBe(0);
    expect((await pillole(['verify', '--id', 'p-1', '7203.T'], here())).code).toBe(0);
    expect(fixture.server.requests.at(-1)).toBe('/api/market/verify?id=p-1&symbol=7203.T');
  });

  test('one symbol of several without an answer: exit code 6', async () => {
    const good = { ...STALE, verdict: 'verified', usable: true, reasons: [] };
    fixture.server.answer(() => ({ body: { data: { '7203.T': good } } }));
    const { code, stdout } = await pillole(['verify', '7203.T', 'X.T'], here());
    expect(code).toBe(6);
    expect(stdout).toMatch(/^X\.T +no .*no answer$/m);
  });

  test('an id alone: a line for each symbol; an unknown id: exit code 6 and the reason', async () => {
    const good = { ...STALE, verdict: 'verified', usable: true, reasons: [] };
    const list = { data: [good], complete: true, reasons: [], position: 'e1:' };
    fixture.server.answer(() => ({ body: list }));
    expect((await pillole(['verify', '--id', 'p-1'], here())).code).toBe(0);
    const hole = { code: 'search_incomplete', detail: 'history does not answer' };
    fixture.server.answer(() => ({
      body: { ...list, data: [], complete: false, reasons: [hole] },
    }));
    const { code, stdout, stderr } = await pillole(['verify', '--id', 'p-1'], here());
    expect([code, stdout]).toEqual([6, '']);
    expect(stderr).toBe(
      'No symbol has a pill with the id p-1.\n' +
        'The list is incomplete: history does not answer.\n',
    );
  });

  test('a server without verify', async () => {
    const { code, stdout, stderr } = await pillole(['verify', '7203.T'], here());
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' });
    expect(stderr).toBe(
      'pillole: This server has no /api/market/verify. Check that apiUrl is the address of the ' +
        'API, not of ingest or of the stream. (endpoint_unavailable)\n',
    );
  });
});

describe('errors', () => {
  const problem = (status: number, code: string, more: object = {}) => ({
    status,
    body: { type: 'x', title: 'Refused', status, code, request_id: 'r_1', ...more },
  });

  test.each([
    [problem(401, 'key_invalid'), 3, /Refused\. \(key_invalid, request r_1\)\n.*Check PILLOLE_KEY/],
    [problem(403, 'subscription_required'), 3, /subscription_required/],
    [problem(400, 'symbol_malformed'), 2, /symbol_malformed/],
    [problem(404, 'no_pill'), 6, /no_pill/],
    [problem(429, 'daily_quota_exceeded', { retry_after_s: 7_200 }), 4, /Try again in 2 h\./],
    [problem(500, 'internal'), 5, /internal/],
  ])('%o', async (answer, exit, expected) => {
    fixture.server.answer(() => answer);
    const { code, stdout, stderr } = await pillole(['latest', '7203.T'], here());
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr).toMatch(expected);
    expect(stderr).not.toMatch(/ at .*\.js/); // no stack trace, since it is not a bug
    const json = await pillole(['latest', '7203.T', '--json'], here());
    expect(JSON.parse(json.stderr)).toMatchObject({ type: 'error', request_id: 'r_1' });
  });

  test('an unreachable server', async () => {
    await fixture.server.close();
    const { code, stderr } = await pillole(['latest'], here());
    expect(code).toBe(5);
    expect(stderr).toMatch(/cannot be reached: ECONNREFUSED \(network\)\n.*Check the address/);
  });

  test.each([
    [['tail'], /missing required argument/],
    [['tail', 'A', '--count', '0'], /whole number above 0/],
    [['tail', 'A', '--mode', 'some'], /Allowed choices are all, latest/],
    [['tail', 'A', '--resume', 'e1:0-1', '--since', 'x'], /not both/],
    [['verify'], /Name a symbol, or use --id/],
    [['what'], /unknown command/],
    [['latest', '--api-url', 'example'], /"example" is not a valid address/],
    [['latest', '--key-file', 'nowhere'], /file cannot be read/],
  ])('%j is a usage error', async (args, expected) => {
    const { code, stderr } = await pillole(args, here());
    expect(code).toBe(2);
    expect(stderr).toMatch(expected);
  });

  test('--help lists the exit codes', async () => {
    const { code, stdout } = await pillole(['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Exit codes:\n {2}0 .*\n(.*\n)* {2}130 /);
  });
});

describe('the key', () => {
  const recordKeys = () => {
    const keys: unknown[] = [];
    fixture.server.answer((_, request) => {
      keys.push(request.headers['x-api-key']);
      return { body: LATEST };
    });
    return keys;
  };
  const writeLocal = async (name: string, content: unknown) => {
    await mkdir(path.join(folder, '.local'), { recursive: true });
    await writeFile(path.join(folder, '.local', name), JSON.stringify(content));
  };

  test('a key as an argument is refused and not repeated in the message', async () => {
    const { code, stderr } = await pillole(['latest', '--key', 'pil_live_secret'], here());
    expect(code).toBe(2);
    expect(stderr).toMatch(/process list.*PILLOLE_KEY/);
    expect(stderr).not.toContain('secret');
    expect(fixture.server.requests).toEqual([]);
  });

  test('the key of a file precedes that of the environment; a file readable by others causes a warning', async () => {
    const keys = recordKeys();
    const file = path.join(folder, 'key');
    await writeFile(file, 'pil_live_file\n', { mode: 0o600 });
    expect((await pillole(['latest', '--key-file', file], here())).stderr).toBe('');
    await rm(file);
    await writeFile(file, 'pil_live_file\n', { mode: 0o644 });
    expect((await pillole(['latest', '--key-file', file], here())).stderr).toMatch(/chmod 600/);
    expect(keys).toEqual(['pil_live_file', 'pil_live_file']);
    await writeFile(file, '{"key": "x y"}');
    expect((await pillole(['latest', '--key-file', file], here())).code).toBe(2);
  });

  test('the key and the addresses of the stack in this folder', async () => {
    const keys = recordKeys();
    await writeLocal('demo-keys.json', { basic: 'pil_b', pro: 'pil_p' });
    expect((await pillole(['latest'])).stderr).toMatch(/The address of the platform is unknown/);
    await writeLocal('stack.json', {
      api: fixture.server.httpUrl,
      stream: fixture.server.streamUrl,
    });
    expect((await pillole(['latest'])).code).toBe(0);
    expect(keys).toEqual(['pil_p']);
    const run = runCli(['tail', '7203.T', '-n', '1'], { cwd: folder });
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5');
    connection.send(pillFrame(6, null));
    expect(await run.exited).toBe(0);
  });

  test('a demo key is not sent to another machine', async () => {
    await writeLocal('demo-keys.json', { pro: 'pil_p' });
    const { code, stderr } = await pillole(['latest', '--api-url', 'https://pillole.invalid']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/No key is set/);
  });

  test('a key that is sent unencrypted to another machine causes a warning', async () => {
    const env = { PILLOLE_API_URL: 'http://pillole.invalid', PILLOLE_KEY: 'k' };
    expect((await pillole(['latest'], env)).stderr).toMatch(/Warning: the key is sent unencrypted/);
  });

  test('the API provides the address of streams if none is set', async () => {
    fixture.server.answer(() => ({ body: { services: { stream: fixture.server.streamUrl } } }));
    const run = runCli(['tail', '7203.T', '-n', '1'], { env: here() });
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5');
    connection.send(pillFrame(6, null));
    expect(await run.exited).toBe(0);
    expect(fixture.server.requests).toEqual(['/api/account']);
  });
});
