import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { handOver, pill, pillAt } from '../testing/frames.ts';
import { usePlayServer } from '../testing/play.ts';
import { endRuns, runCli } from '../testing/run.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { runProgram } from './program.ts';

const play = usePlayServer();
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

const here = () => ({ PILLOLE_API_URL: play.server.httpUrl, PILLOLE_KEY: 'pil_live_key' });

const PAST = { timestamp: '2020-01-01T00:00:00.000000Z' };
const LATEST = { data: pillAt(5, 4, PAST), position: 'e1:0-5' };
const MANY = {
  data: { '7203.T': pillAt(5, 4, PAST) },
  errors: { 'X.T': { code: 'no_pill', detail: 'No pill of this symbol was ever received.' } },
  position: 'e1:0-5',
};
const STALE = {
  ...{ subject: { symbol: '7203.T' }, checked_at: '2026-11-20T02:45:00Z', verdict: 'stale' },
  ...{ usable: false, valid_until: '2026-11-20T03:30:00Z', age_ms: 900_000 },
  reasons: [{ code: 'pill_too_old', detail: '900 s old, limit 5 s' }],
};

describe('latest', () => {
  test('one symbol, as a table and as JSON', async () => {
    play.server.answer(() => ({ body: LATEST }));
    const table = await pillole(['latest', '7203.T'], here());
    expect(table).toMatchObject({ code: 0, stderr: '' });
    expect(table.stdout.split('\n')[0]).toMatch(/^TIME \(UTC\) +SYMBOL +SPREAD % +STATE +CONF/);
    expect(table.stdout.split('\n')[1]).toMatch(/^2020-01-01 00:00:00.000000 +7203.T +0.125 +open/);
    const json = await pillole(['latest', '7203.T', '--json'], here());
    expect(JSON.parse(json.stdout)).toEqual(LATEST);
  });

  test('several: those without a pill are named, and the exit code says no', async () => {
    play.server.answer(() => ({ body: MANY }));
    const { code, stdout, stderr } = await pillole(['latest', '7203.T', 'X.T'], here());
    expect(code).toBe(6);
    expect(stdout).toContain('7203.T');
    expect(stderr).toBe('X.T: No pill of this symbol was ever received. (no_pill)\n');
    expect(play.server.requests).toEqual(['/api/pills/latest?symbols=7203.T%2CX.T']);
  });
});

describe('verify', () => {
  test('not usable: the reasons, and exit code 6; usable: 0', async () => {
    play.server.answer(() => ({ body: STALE }));
    const { code, stdout } = await pillole(['verify', '7203.T'], here());
    expect(code).toBe(6);
    expect(stdout.split('\n')[1]).toBe(
      '7203.T  no      stale      15 min  2026-11-20T03:30:00Z  pill_too_old (900 s old, limit 5 s)',
    );
    const good = { ...STALE, verdict: 'verified', usable: true, reasons: [] };
    play.server.answer(() => ({ body: good }));
    expect((await pillole(['verify', '7203.T'], here())).code).toBe(0);
    expect((await pillole(['verify', '--id', 'p-1', '7203.T'], here())).code).toBe(0);
    expect(play.server.requests.at(-1)).toBe('/api/market/verify?id=p-1&symbol=7203.T');
  });

  test('one of several has no answer: no', async () => {
    const good = { ...STALE, verdict: 'verified', usable: true, reasons: [] };
    play.server.answer(() => ({ body: { data: { '7203.T': good } } }));
    const { code, stdout } = await pillole(['verify', '7203.T', 'X.T'], here());
    expect(code).toBe(6);
    expect(stdout).toMatch(/^X\.T +no .*no answer$/m);
  });

  test('an id alone: a line for each symbol; of an id that nobody has: no, and why', async () => {
    const good = { ...STALE, verdict: 'verified', usable: true, reasons: [] };
    const list = { data: [good], complete: true, reasons: [], position: 'e1:' };
    play.server.answer(() => ({ body: list }));
    expect((await pillole(['verify', '--id', 'p-1'], here())).code).toBe(0);
    const hole = { code: 'search_incomplete', detail: 'history does not answer' };
    play.server.answer(() => ({
      body: { ...list, data: [], complete: false, reasons: [hole] },
    }));
    const { code, stdout, stderr } = await pillole(['verify', '--id', 'p-1'], here());
    expect([code, stdout]).toEqual([6, '']);
    expect(stderr).toBe(
      'No symbol has a pill with the id p-1.\n' +
        'The list is not complete: history does not answer.\n',
    );
  });

  test('a server that has none', async () => {
    const { code, stdout, stderr } = await pillole(['verify', '7203.T'], here());
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' });
    expect(stderr).toBe(
      'pillole: This server has no /api/market/verify. (endpoint_unavailable)\n' +
        'pillole: This version of the platform does not serve it yet.\n',
    );
  });
});

describe('errors', () => {
  const problem = (status: number, code: string, more: object = {}) => ({
    status,
    body: { type: 'x', title: 'Told', status, code, request_id: 'r_1', ...more },
  });

  test.each([
    [problem(401, 'key_invalid'), 3, /Told\. \(key_invalid, request r_1\)\n.*Check PILLOLE_KEY/],
    [problem(403, 'subscription_required'), 3, /subscription_required/],
    [problem(400, 'symbol_malformed'), 2, /symbol_malformed/],
    [problem(404, 'no_pill'), 6, /no_pill/],
    [problem(429, 'daily_quota_exceeded', { retry_after_s: 7_200 }), 4, /Again in 2 h\./],
    [problem(500, 'internal'), 5, /internal/],
  ])('%o', async (answer, exit, expected) => {
    play.server.answer(() => answer);
    const { code, stdout, stderr } = await pillole(['latest', '7203.T'], here());
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr).toMatch(expected);
    expect(stderr).not.toMatch(/ at .*\.js/); // no stack: it is no bug of ours
    const json = await pillole(['latest', '7203.T', '--json'], here());
    expect(JSON.parse(json.stderr)).toMatchObject({ type: 'error', request_id: 'r_1' });
  });

  test('nobody there', async () => {
    await play.server.close();
    const { code, stderr } = await pillole(['latest'], here());
    expect(code).toBe(5);
    expect(stderr).toMatch(/cannot be reached: ECONNREFUSED \(network\)\n.*Is the address right/);
  });

  test.each([
    [['tail'], /missing required argument/],
    [['tail', 'A', '--count', '0'], /whole number above 0/],
    [['tail', 'A', '--mode', 'some'], /Allowed choices are all, latest/],
    [['tail', 'A', '--resume', 'e1:0-1', '--since', 'x'], /not both/],
    [['verify'], /Name a symbol, or --id/],
    [['what'], /unknown command/],
    [['latest', '--api-url', 'example'], /"example" is no address/],
    [['latest', '--key-file', 'nowhere'], /key file cannot be read/],
  ])('%j is a fault of the command line', async (args, expected) => {
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
  const asked = () => {
    const keys: unknown[] = [];
    play.server.answer((_, request) => {
      keys.push(request.headers['x-api-key']);
      return { body: LATEST };
    });
    return keys;
  };
  const writeLocal = async (name: string, content: unknown) => {
    await mkdir(path.join(folder, '.local'), { recursive: true });
    await writeFile(path.join(folder, '.local', name), JSON.stringify(content));
  };

  test('never as an argument: refused, and not repeated in the message', async () => {
    const { code, stderr } = await pillole(['latest', '--key', 'pil_live_secret'], here());
    expect(code).toBe(2);
    expect(stderr).toMatch(/process list.*PILLOLE_KEY/);
    expect(stderr).not.toContain('secret');
    expect(play.server.requests).toEqual([]);
  });

  test('of a file, before that of the environment; one that others can read is told', async () => {
    const keys = asked();
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

  test('of the stack of this folder, with its addresses', async () => {
    const keys = asked();
    await writeLocal('demo-keys.json', { basic: 'pil_b', pro: 'pil_p' });
    expect((await pillole(['latest'])).stderr).toMatch(/Where is the platform\?/);
    await writeLocal('stack.json', { api: play.server.httpUrl, stream: play.server.streamUrl });
    expect((await pillole(['latest'])).code).toBe(0);
    expect(keys).toEqual(['pil_p']);
    const run = runCli(['tail', '7203.T', '-n', '1'], { cwd: folder });
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5');
    connection.send(pill(6, null));
    expect(await run.exited).toBe(0);
  });

  test('a demo key is sent to no other machine', async () => {
    await writeLocal('demo-keys.json', { pro: 'pil_p' });
    const { code, stderr } = await pillole(['latest', '--api-url', 'https://pillole.invalid']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/There is no key/);
  });

  test('without encryption to another machine: it is told', async () => {
    const env = { PILLOLE_API_URL: 'http://pillole.invalid', PILLOLE_KEY: 'k' };
    expect((await pillole(['latest'], env)).stderr).toMatch(/Warning: the key travels unencrypted/);
  });

  test('the address of streams is asked of the API where it was not named', async () => {
    play.server.answer(() => ({ body: { services: { stream: play.server.streamUrl } } }));
    const run = runCli(['tail', '7203.T', '-n', '1'], { env: here() });
    const connection = await play.server.connection();
    await handOver(connection, 'e1:0-5');
    connection.send(pill(6, null));
    expect(await run.exited).toBe(0);
    expect(play.server.requests).toEqual(['/api/account']);
  });
});
