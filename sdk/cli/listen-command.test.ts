import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { EVENT_CATALOGUE } from '../../domain/webhooks/events/event-catalogue.ts';
import { waitFor } from '../../testing/wait.ts';
import { endRuns, type Run, runCli } from '../testing/run-program.ts';
import {
  OTHER_SECRET,
  SECRET,
  type SignOptions,
  signedHeaders,
} from '../testing/signed-webhooks.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  endRuns();
  for (const close of closing.splice(0)) close();
});

const PILL = JSON.stringify(EVENT_CATALOGUE['pill.published'].example);
const PILLS = JSON.stringify(EVENT_CATALOGUE['pills.published'].example);
const { challenge } = EVENT_CATALOGUE['endpoint.test'].example.data;
const TEST = JSON.stringify(EVENT_CATALOGUE['endpoint.test'].example);

interface Listening extends Run {
  readonly url: string;
  post(body: string, options?: SignOptions): Promise<{ status: number; text: string }>;
}

/** Starts `pillole listen` on a free port. */
async function listen(args: readonly string[] = [], env: Record<string, string> = {}) {
  const run = runCli(['listen', '--port', '0', ...args], {
    env: { PILLOLE_WEBHOOK_SECRET: SECRET, ...env },
  });
  const urlOf = () => /http:\/\/127\.0\.0\.1:\d+/.exec(run.stderr() + run.stdout())?.[0];
  await waitFor('the address', () => urlOf() !== undefined);
  const url = urlOf()!;
  const post: Listening['post'] = async (body, options) => {
    const headers = signedHeaders(body, options);
    const answer = await fetch(`${url}/hooks`, { method: 'POST', body, headers });
    return { status: answer.status, text: await answer.text() };
  };
  return { ...run, url, post };
}

/** The lines of deliveries, as soon as there are this many. */
async function linesOf(run: Run, count: number): Promise<string[]> {
  const lines = () => run.stdout().trimEnd().split('\n').slice(1);
  await waitFor(`${count} lines`, () => lines().length >= count);
  return lines();
}

/** The developer's application. */
async function openApp(answer: http.RequestListener) {
  const server = http.createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?of=7`;
}

describe('for people', () => {
  test('each delivery is a line: verified, repeated, forged, too old', async () => {
    const run = await listen();
    expect(await run.post(PILL, { id: 'msg_k7f3_3-132' })).toEqual({ status: 200, text: '' });
    expect((await run.post(PILL, { id: 'msg_k7f3_3-132' })).status).toBe(200);
    const forged = await run.post(PILL, { id: 'msg_k7f3_3-133', secrets: [OTHER_SECRET] });
    expect(forged).toMatchObject({
      status: 401,
      text: expect.stringMatching(/^No signature matches/),
    });
    const old = await run.post(PILLS, { id: 'msg_2', at: new Date(Date.now() - 400_000) });
    expect(old).toMatchObject({
      status: 401,
      text: expect.stringMatching(/^The delivery was sent 40\d s/),
    });
    // The id of a forged delivery is not remembered.
    expect((await run.post(PILLS, { id: 'msg_k7f3_3-133' })).status).toBe(200);

    const lines = await linesOf(run, 5);
    expect(run.stdout()).toMatch(/^TIME \(UTC\) +TYPE +WEBHOOK-ID +AGE +ANSWER +SIGNATURE/);
    const time = '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}';
    const age = '-?[\\d.]+ (ms|s|min|h|d)';
    const expected = [
      `^${time} +pill\\.published +msg_k7f3_3-132 +${age} +200 +verified +7203\\.T$`,
      `^${time} +pill\\.published +msg_k7f3_3-132 +${age} +200 +verified +REPEAT 7203\\.T$`,
      `^${time} .* 401 +NOT VERIFIED +7203\\.T signature_mismatch: No signature matches`,
      `^${time} +pills\\.published .* 401 +NOT VERIFIED +7203\\.T 0700\\.HK too_old: The delivery was sent`,
      `^${time} +pills\\.published +msg_k7f3_3-133 .* 200 +verified +7203\\.T 0700\\.HK$`,
    ];
    for (const [at, line] of expected.entries()) expect(lines[at]).toMatch(new RegExp(line));
    run.child.kill('SIGINT');
    expect(await run.exited).toBe(130);
    expect(run.stderr()).toMatch(
      /Deliveries: 5; verified: 3; not verified: 2; not checked: 0; repeats: 1\.\n$/,
    );
  });

  test('a challenge is answered, whatever --status is', async () => {
    const run = await listen(['--status', '503']);
    expect(await run.post(TEST)).toEqual({ status: 200, text: challenge });
    expect((await run.post(PILL, { id: 'msg_2' })).status).toBe(503);
    const [test] = await linesOf(run, 2);
    expect(test).toMatch(/endpoint\.test .* verified +challenge answered$/);
  });

  test('several secrets, in the environment or as flags', async () => {
    const both = `${SECRET}, ${OTHER_SECRET}`;
    const run = await listen([], { PILLOLE_WEBHOOK_SECRET: both });
    for (const secrets of [[SECRET], [OTHER_SECRET]]) {
      expect((await run.post(PILL, { secrets })).status).toBe(200);
    }
    const flags = ['--secret', OTHER_SECRET, '--secret', SECRET];
    const other = await listen(flags, { PILLOLE_WEBHOOK_SECRET: 'unused' });
    for (const secrets of [[SECRET], [OTHER_SECRET]]) {
      expect((await other.post(PILL, { secrets })).status).toBe(200);
    }
    await waitFor('the warning', () => other.stderr().includes('is visible in the process list'));
    expect(other.stderr()).not.toContain(SECRET);
  });

  test('without a secret listen warns that nothing is verified, and answers', async () => {
    const run = await listen([], { PILLOLE_WEBHOOK_SECRET: '' });
    await waitFor('the warning', () => run.stderr().includes('WARNING: NOTHING IS VERIFIED'));
    expect((await run.post(PILL, { secrets: [OTHER_SECRET] })).status).toBe(200);
    expect(await run.post(TEST, { id: 'msg_2' })).toEqual({ status: 200, text: challenge });
    for (const body of ['', 'null', '{"type":"endpoint.test","data":null}', '{"type":"x"}']) {
      expect((await run.post(body, { id: 'msg_3' })).status).toBe(200);
    }
    const lines = await linesOf(run, 6);
    expect(lines[0]).toContain('not checked');
    run.child.kill('SIGTERM');
    expect(await run.exited).toBe(130);
    expect(run.stderr()).toContain('not checked: 6;');
  });

  test('control characters of a delivery do not reach the terminal', async () => {
    const run = await listen([], { PILLOLE_WEBHOOK_SECRET: '' });
    await run.post(JSON.stringify({ type: '\u001b[2J', data: { symbol: 'a\nb\u009b' } }));
    const [line] = await linesOf(run, 1);
    expect(line).toContain('\ufffd[2J');
    expect(line).toContain('a\ufffdb\ufffd');
  });
});

test('--json: one object per line', async () => {
  const run = await listen(['--json']);
  await run.post(PILL);
  await run.post(PILL);
  await run.post(PILL, { id: 'msg_2', secrets: [OTHER_SECRET] });
  run.child.kill('SIGINT');
  expect(await run.exited).toBe(130);
  const [begin, first, second, third, end] = run.json();
  expect(begin).toEqual({ type: 'listening', url: run.url });
  expect(first).toEqual({
    type: 'delivery',
    at: expect.stringMatching(/Z$/),
    webhook_id: 'msg_1',
    event: JSON.parse(PILL),
    age_ms: expect.any(Number),
    symbols: ['7203.T'],
    verified: true,
    repeat: false,
    status: 200,
  });
  expect(second).toMatchObject({ repeat: true });
  const reason = expect.stringMatching(/^No signature matches/);
  expect(third).toMatchObject({ verified: false, code: 'signature_mismatch', reason, status: 401 });
  const counts = { deliveries: 3, verified: 2, not_verified: 1, repeats: 1 };
  expect(end).toEqual({ type: 'closed', ...counts });
  expect(run.stderr()).toBe('');
});

describe('--forward-to', () => {
  test('the application gets the same bytes and headers, and its answer is returned', async () => {
    const got: { body: string; headers: http.IncomingHttpHeaders; url: string | undefined }[] = [];
    const app = await openApp(async (request, response) => {
      const chunks = await request.toArray();
      const body = Buffer.concat(chunks).toString();
      got.push({ body, headers: request.headers, url: request.url });
      response.writeHead(503, { 'retry-after': '7', 'x-from': 'app' }).end('busy');
    });
    const run = await listen(['--forward-to', app]);
    const body = `${PILL.slice(0, -1)} , "é": "\\u00e9" }`;
    const headers = { ...signedHeaders(body), 'x-custom': 'mine' };
    const answer = await fetch(run.url, { method: 'POST', body, headers });
    expect([answer.status, await answer.text()]).toEqual([503, 'busy']);
    expect(answer.headers.get('retry-after')).toBe('7');
    expect(answer.headers.get('x-from')).toBe('app');
    expect(got).toHaveLength(1);
    expect(got[0]).toMatchObject({ body, headers, url: '/hook?of=7' });
    expect(got[0]!.headers.host).toBe(new URL(app).host);
    // An unverified delivery is not forwarded.
    expect((await run.post(PILL, { secrets: [OTHER_SECRET] })).status).toBe(401);
    expect(got).toHaveLength(1);
    expect((await linesOf(run, 1))[0]).toMatch(/ 503 +verified +7203\.T forwarded$/);
  });

  test('the application may answer the challenge; otherwise listen does', async () => {
    const echo = await openApp((request, response) => void request.pipe(response));
    const run = await listen(['--forward-to', echo]);
    expect(await run.post(TEST)).toEqual({ status: 200, text: TEST });
    const silent = await openApp((_, response) => void response.end('ok'));
    const other = await listen(['--forward-to', silent]);
    expect(await other.post(TEST)).toEqual({ status: 200, text: challenge });
    expect((await linesOf(other, 1))[0]).toContain('your application does not');
  });

  test('an application that closes the connection: 502, but the challenge is answered', async () => {
    const app = await openApp((request) => void request.socket.destroy());
    const run = await listen(['--forward-to', app]);
    const answer = await run.post(PILL);
    expect(answer.status).toBe(502);
    expect(answer.text).toMatch(/^Your application does not answer: ECONNRESET\. Is it running\?/);
    expect(await run.post(TEST, { id: 'msg_2' })).toEqual({ status: 200, text: challenge });
  });
});

describe('bounds', () => {
  test('1 MiB is accepted, one byte more is 413; other methods are refused', async () => {
    const run = await listen([], { PILLOLE_WEBHOOK_SECRET: '' });
    expect((await run.post('x'.repeat(1_048_576))).status).toBe(200);
    const large = await fetch(run.url, { method: 'POST', body: 'x'.repeat(1_048_577) }).then(
      async (answer) => ({ status: answer.status, text: await answer.text() }),
    );
    expect(large).toEqual({ status: 413, text: 'A delivery may have at most 1 MiB.\n' });
    const read = await fetch(run.url);
    expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('64 concurrent deliveries are answered; one more gets 503', async () => {
    const held: http.ServerResponse[] = [];
    const app = await openApp((_, response) => void held.push(response));
    const run = await listen(['--forward-to', app]);
    const first = Array.from({ length: 64 }, (_, at) => run.post(PILL, { id: `msg_${at}` }));
    await waitFor('64 concurrent deliveries', () => held.length === 64);
    expect(await run.post(PILL, { id: 'msg_more' })).toMatchObject({ status: 503 });
    for (const response of held) response.end();
    const statuses = (await Promise.all(first)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test('after 1,000 newer ids an id counts as new', async () => {
    const run = await listen(['--json'], { PILLOLE_WEBHOOK_SECRET: '' });
    for (let at = 0; at <= 1_000; at += 1) await run.post('{"type":"x"}', { id: `msg_${at}` });
    await run.post('{"type":"x"}', { id: 'msg_1' });
    await run.post('{"type":"x"}', { id: 'msg_0' });
    const deliveries = () => run.json().filter(({ type }) => type === 'delivery');
    await waitFor('all deliveries to be printed', () => deliveries().length === 1_003);
    expect(deliveries().slice(-2)).toMatchObject([
      { webhook_id: 'msg_1', repeat: true },
      { webhook_id: 'msg_0', repeat: false },
    ]);
  });

  test('Ctrl-C ends listen even while an application hangs', async () => {
    const held: http.ServerResponse[] = [];
    const app = await openApp((_, response) => void held.push(response));
    const run = await listen(['--forward-to', app]);
    const waiting = run.post(PILL).catch(() => 'aborted');
    await waitFor('the application to hang', () => held.length === 1);
    run.child.kill('SIGINT');
    expect(await run.exited).toBe(130);
    expect(await waiting).toBe('aborted');
    expect(run.stderr()).toMatch(/Deliveries: /);
  });

  test('a sender may disconnect in the middle of a body', async () => {
    const run = await listen();
    const { port } = new URL(run.url);
    const socket = net.connect(Number(port), '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
    await once(socket, 'connect');
    socket.destroy();
    expect((await run.post(PILL)).status).toBe(200);
  });
});

describe('faults of the command line: a message and exit code 2', () => {
  test.each([
    [['--port', '70000'], /A port from 0 to 65535/],
    [['--port', 'x'], /A port from 0 to 65535/],
    [['--status', '100'], /An HTTP status from 200 to 599/],
    [['--secret', 'pil_live_x'], /--secret: This is not a webhook secret/],
    [['--forward-to', 'localhost:3000'], /"localhost:3000" is not an address/],
    [['--host', '192.0.2.1'], /Cannot listen on port 0 of 192\.0\.2\.1/],
  ])('%j', async (args, expected) => {
    const run = runCli(['listen', '--port', '0', ...args]);
    expect(await run.exited).toBe(2);
    expect(run.stderr()).toMatch(expected);
    expect(run.stderr()).not.toMatch(/ at .*\.js/);
    expect(run.stdout()).toBe('');
  });

  test('a port in use, and an invalid secret in the environment', async () => {
    const run = await listen();
    const { port } = new URL(run.url);
    const second = runCli(['listen', '--port', port], { env: { PILLOLE_WEBHOOK_SECRET: SECRET } });
    expect(await second.exited).toBe(2);
    expect(second.stderr()).toMatch(/The port is in use\. Choose another one with --port/);
    const wrong = runCli(['listen'], { env: { PILLOLE_WEBHOOK_SECRET: 'secret' } });
    expect(await wrong.exited).toBe(2);
    expect(wrong.stderr()).toMatch(/PILLOLE_WEBHOOK_SECRET: This is not a webhook secret/);
  });
});
