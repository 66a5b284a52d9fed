import type http from 'node:http';
import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { waitFor } from '../../../testing/wait.ts';
import { answerText, retryAfterSeconds } from './receiver-answer.ts';
import { openResolver } from './resolve.ts';
import {
  type CustomerServer,
  openCustomerServer,
  openRawServer,
} from './testing/customer-server.ts';
import { policyOf } from './testing/policy.ts';
import { openSender, type Sender, type SenderOptions, type SendResult } from './webhook-sender.ts';

const HOUR_MS = 3_600_000;
let sender: Sender;
const receivers: CustomerServer[] = [];
afterEach(async () => {
  await sender.close();
  for (const receiver of receivers.splice(0)) await receiver.close();
});

function open(options: Partial<SenderOptions> = {}) {
  sender = openSender({
    policy: policyOf({ allowLoopback: true }),
    resolver: openResolver(),
    timeoutMs: HOUR_MS,
    ...options,
  });
}

async function serve(handle: http.RequestListener): Promise<CustomerServer> {
  const receiver = await openCustomerServer(handle);
  receivers.push(receiver);
  return receiver;
}

async function speak(say: (socket: net.Socket) => void): Promise<CustomerServer> {
  const receiver = await openRawServer(say);
  receivers.push(receiver);
  return receiver;
}

function post(
  { port }: CustomerServer,
  { endpointId = 'whe_a', path = '/', headers = {}, ours = {}, body = '{}' } = {},
): Promise<SendResult> {
  return sender.send({ endpointId, url: `http://127.0.0.1:${port}${path}`, headers }, ours, body);
}

test('body, path and headers arrive unchanged; our headers win, connection headers are left out', async () => {
  let got: http.IncomingMessage | undefined;
  let text = '';
  const receiver = await serve(async (request, response) => {
    got = request;
    for await (const chunk of request) text += chunk;
    response.end();
  });
  open();
  const body = '{"note":"\u20ac\u{1f48a}"}';
  const result = await post(receiver, {
    path: '/a%20b?c=d&e',
    headers: {
      Authorization: 'Bearer x',
      'User-Agent': 'me',
      'Webhook-Id': 'forged',
      Host: 'forged',
      'Content-Length': '1',
      'Transfer-Encoding': 'chunked',
      Connection: 'close',
      Expect: '100-continue',
      'Accept-Encoding': 'gzip',
      Cookie: 'a=b',
      'X-Forwarded-For': '10.0.0.1',
      Forwarded: 'for=10.0.0.1',
      Via: '1.1 forged',
    },
    ours: { 'webhook-id': 'msg_1', 'user-agent': 'pillole-webhooks/1' },
    body,
  });
  expect(result).toMatchObject({ kind: 'answered', status: 200, answer: '' });
  expect(text).toBe(body);
  expect([got?.method, got?.url]).toEqual(['POST', '/a%20b?c=d&e']);
  expect(got?.headers).toEqual({
    authorization: 'Bearer x',
    'user-agent': 'pillole-webhooks/1',
    'webhook-id': 'msg_1',
    'accept-encoding': 'identity',
    'content-length': String(Buffer.byteLength(body)),
    host: `127.0.0.1:${receiver.port}`,
    connection: 'keep-alive',
  });
});

test.each([200, 204, 299, 400, 404, 410, 429, 500, 503, 599])(
  'status %d is returned',
  async (status) => {
    const receiver = await serve((_, response) => {
      response.writeHead(status, { 'retry-after': '7' }).end();
    });
    open();
    expect(await post(receiver)).toMatchObject({ kind: 'answered', status, retryAfterS: 7 });
  },
);

const NOW = Date.parse('2026-11-21T18:00:00Z');
test.each([
  [undefined, undefined],
  ['', undefined],
  ['0', 0],
  ['120', 120],
  [' 120 ', 120],
  ['86400', 86_400],
  ['86401', 86_400],
  ['9'.repeat(400), 86_400],
  ['-1', undefined],
  ['1.5', undefined],
  ['1e3', undefined],
  ['0x10', undefined],
  ['soon', undefined],
  ['2026-11-21T18:01:00Z', undefined],
  ['Sat, 21 Nov 2026 18:01:00 GMT', 60],
  ['Saturday, 21-Nov-26 18:01:00 GMT', 60],
  ['Sat, 21 Nov 2026 17:59:00 GMT', 0],
  ['Sat, 21 Nov 2099 17:59:00 GMT', 86_400],
  ['Sat, 99 Nov 2026 18:01:00 GMT', undefined],
])('Retry-After %j is %s', (text, seconds) => {
  expect(retryAfterSeconds(text, NOW)).toBe(seconds);
});

test.each([
  ['plain', 'ok', 'ok'],
  ['control characters', 'a\0b\r\nc\u001b[31md\u0085e\u2028f\u007f', 'a b  c [31md e f '],
  ['direction of writing', 'a\u202eb\u2066c\u200fd', 'abcd'],
  ['astral characters', '\u{1f48a}', '\u{1f48a}'],
  ['a cut character', Buffer.from('ab\u20ac').subarray(0, 4), 'ab'],
  ['a lone surrogate', Buffer.from([0x61, 0xed, 0xa0, 0x80, 0x62]), 'a\ufffd\ufffd\ufffdb'],
  ['no UTF-8', Buffer.from([0xff, 0x61]), '\ufffda'],
])('the answer is kept as one line of text: %s', (_, bytes, text) => {
  expect(answerText(Buffer.from(bytes as string))).toBe(text);
  expect(answerText(Buffer.from(bytes as string)).isWellFormed()).toBe(true);
});

test('a body of 16 KiB is read, 1,024 bytes are kept, and the connection is reused', async () => {
  const receiver = await serve((_, response) => response.end('x'.repeat(16_384)));
  open();
  for (const _ of [1, 2]) {
    expect(await post(receiver)).toMatchObject({ status: 200, answer: 'x'.repeat(1_024) });
  }
  expect(receiver.connectionCount()).toBe(1);
});

test('a body of 1 GiB counts by its status, and is cut off', async () => {
  let written = 0;
  let isClosed = false;
  const chunk = Buffer.alloc(65_536, 'x');
  const receiver = await serve((_, response) => {
    response.writeHead(202, { 'content-length': String(1_073_741_824) });
    response.on('close', () => {
      isClosed = true;
    });
    const write = () => {
      while (!isClosed && written < 1_073_741_824) {
        written += chunk.length;
        if (!response.write(chunk)) return;
      }
    };
    response.on('drain', write);
    write();
  });
  open();
  expect(await post(receiver)).toMatchObject({ status: 202, answer: 'x'.repeat(1_024) });
  await waitFor('the cut', () => isClosed);
  expect(written).toBeLessThan(100_000_000);
});

test('compressed bodies are not unpacked', async () => {
  const receiver = await serve((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('not gzip');
  });
  open();
  expect(await post(receiver)).toMatchObject({ status: 200, answer: 'not gzip' });
});

const head = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n';
test.each([
  ['never answers', () => {}, 'timeout'],
  ['stops inside the headers', (socket: net.Socket) => socket.write(head), 'timeout'],
  ['stops inside the body', (socket: net.Socket) => socket.write(`${head}\r\nx`), 'timeout'],
  ['drips', drip, 'timeout'],
  ['resets', (socket: net.Socket) => socket.resetAndDestroy(), 'reset'],
  ['closes', (socket: net.Socket) => socket.end(), 'reset'],
  ['closes inside the body', (socket: net.Socket) => socket.end(`${head}\r\nx`), 'reset'],
  ['talks garbage', (socket: net.Socket) => socket.end('SSH-2.0-x\r\n'), 'protocol'],
  ['never ends its headers', endlessHeaders, 'protocol'],
  ['switches protocols', switching, 'protocol'],
] as [string, (socket: net.Socket) => void, string][])(
  'a server that %s fails the attempt',
  async (_, say, reason) => {
    const receiver = await speak(say);
    open({ timeoutMs: reason === 'timeout' ? 2_000 : HOUR_MS });
    const result = await post(receiver);
    expect(result).toMatchObject({ kind: 'failed', reason, detail: expect.stringMatching(/\.$/) });
    expect(receiver.requestCount()).toBe(1);
  },
);

function drip(socket: net.Socket) {
  socket.write(`${head}\r\n`);
  const timer = setInterval(() => socket.write('x'), 20);
  socket.on('close', () => clearInterval(timer));
}

function endlessHeaders(socket: net.Socket) {
  socket.write('HTTP/1.1 200 OK\r\n');
  const write = () => {
    while (!socket.destroyed && socket.write(`x: ${'y'.repeat(1_000)}\r\n`));
  };
  socket.on('drain', write);
  write();
}

function switching(socket: net.Socket) {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
}

test('if no server listens, the reason is connect', async () => {
  const receiver = await openCustomerServer(() => {});
  await receiver.close();
  open();
  expect(await post(receiver)).toMatchObject({ kind: 'failed', reason: 'connect' });
});

test('an attempt ends in time at a server that does not finish the TLS handshake', async () => {
  const silent = net.createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as net.AddressInfo;
  open({ timeoutMs: 400 });
  const url = `https://127.0.0.1:${port}/`;
  const result = await sender.send({ endpointId: 'whe_a', url, headers: {} }, {}, '{}');
  expect(result).toMatchObject({ kind: 'failed', reason: 'timeout' });
  await new Promise((resolve) => silent.close(resolve));
});

test('a header that HTTP cannot carry fails the attempt', async () => {
  const receiver = await serve((_, response) => response.end());
  open();
  const headers = { 'x-a': 'b\r\nx-c: d' };
  expect(await post(receiver, { headers })).toMatchObject({ reason: 'protocol' });
  expect(receiver.requestCount()).toBe(0);
});

test('a hanging endpoint holds 8 connections, but no connection of another endpoint on the same host', async () => {
  const hanging = new Set<http.ServerResponse>();
  const receiver = await serve((request, response) => {
    if (request.url === '/hang') hanging.add(response);
    else response.end('ok');
  });
  open();
  const sends = Array.from({ length: 50 }, () =>
    post(receiver, { endpointId: 'whe_hanging', path: '/hang' }),
  );
  await waitFor('8 to hang', () => hanging.size === 8);
  for (let n = 0; n < 20; n += 1) {
    expect(await post(receiver, { endpointId: 'whe_b' })).toMatchObject({ answer: 'ok' });
  }
  expect(hanging.size).toBe(8);
  expect(receiver.connectionCount()).toBe(9);
  // Attempts that wait for a connection are stopped too.
  await sender.close();
  for (const result of await Promise.all(sends))
    expect(result).toMatchObject({ reason: 'stopped' });
  expect(await post(receiver)).toMatchObject({ kind: 'failed', reason: 'stopped' });
});

test('waiting attempts get a connection, and no endpoint has more than its share', async () => {
  let now = 0;
  let most = 0;
  const receiver = await serve((_, response) => {
    now += 1;
    most = Math.max(most, now);
    setImmediate(() => {
      now -= 1;
      response.end();
    });
  });
  open();
  const results = await Promise.all(Array.from({ length: 200 }, () => post(receiver)));
  expect(results.every((result) => result.kind === 'answered')).toBe(true);
  expect(receiver.connectionCount()).toBe(8);
  expect(most).toBeLessThanOrEqual(8);
});

test('the time of waiting attempts runs, and more than 1,000 do not wait', async () => {
  const receiver = await speak(() => {});
  open({ timeoutMs: 1_000 });
  const results = await Promise.all(Array.from({ length: 1_010 }, () => post(receiver)));
  const details = results.map((result) => (result.kind === 'failed' ? result.detail : ''));
  expect(results.every((result) => result.kind === 'failed' && result.reason === 'timeout')).toBe(
    true,
  );
  expect(details.filter((detail) => detail.startsWith('1000 messages wait'))).toHaveLength(2);
});

test('after a failure the next attempt uses a new connection', async () => {
  let isBad = true;
  const receiver = await serve((request, response) => {
    if (isBad) request.socket.destroy();
    else response.end();
  });
  open({ connectionsPerEndpoint: 1 });
  expect(await post(receiver)).toMatchObject({ reason: 'reset' });
  isBad = false;
  expect(await post(receiver)).toMatchObject({ status: 200 });
  expect(receiver.connectionCount()).toBe(2);
});

test('a connection past its maximum age is not used', async () => {
  const receiver = await serve((_, response) => response.end());
  open({ connectionAgeMs: 0 });
  for (const _ of [1, 2, 3]) expect(await post(receiver)).toMatchObject({ status: 200 });
  expect(receiver.connectionCount()).toBe(3);
});

test('connections close when the origin changes, or the endpoint is removed or idle', async () => {
  let closed = 0;
  const watched: http.RequestListener = (request, response) => {
    request.socket.once('close', () => {
      closed += 1;
    });
    response.end();
  };
  const [one, two] = [await serve(watched), await serve(watched)];
  open();
  await post(one);
  await post(two);
  await waitFor('the first connection to close', () => closed === 1);
  sender.forget('whe_a');
  await waitFor('the second connection to close', () => closed === 2);
  await sender.close();
  open({ idleMs: 200 });
  await post(one);
  await waitFor('the idle connection to close', () => closed === 3);
});

test('beyond the bound, the least recently used endpoint loses its connections', async () => {
  const closed: (string | undefined)[] = [];
  const receiver = await serve((request, response) => {
    request.socket.once('close', () => closed.push(request.url));
    response.end();
  });
  open({ endpointsMax: 2 });
  for (const name of ['a', 'b', 'a', 'c']) {
    await post(receiver, { endpointId: `whe_${name}`, path: `/${name}` });
  }
  await waitFor('a connection to close', () => closed.length > 0);
  expect(new Set(closed)).toEqual(new Set(['/b']));
});

test('attempts in flight to a removed endpoint still succeed', async () => {
  const hanging: http.ServerResponse[] = [];
  const receiver = await serve((_, response) => hanging.push(response));
  open({ connectionsPerEndpoint: 1 });
  const sends = [post(receiver), post(receiver)];
  await waitFor('a request to arrive', () => hanging.length === 1);
  sender.forget('whe_a');
  hanging[0]?.end('ok');
  await waitFor('the waiting attempt', () => hanging.length === 2);
  hanging[1]?.end('ok');
  for (const result of await Promise.all(sends)) expect(result).toMatchObject({ answer: 'ok' });
});
