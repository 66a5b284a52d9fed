import type { ChildProcess } from 'node:child_process';
import net from 'node:net';
import { expect } from 'vitest';
import { waitFor } from './wait.ts';

/** Bytes that a client may send, with a name. */
type Input = readonly [string, string | Buffer];

const TARGETS = [
  ...[
    '//',
    '///',
    '//host',
    '//host:99999/a',
    '//[',
    '//%',
    '/%',
    '/%zz',
    '/%00',
    '/%ff',
    '/%c0%ae',
  ],
  ...[
    '/..',
    '/../../etc/passwd',
    '/.//',
    '/\\',
    '/\\\\x',
    '/:',
    '/@',
    '/?',
    '/??&&==',
    '/?%',
    '/?%zz=%',
  ],
  ...['/?a=1&a=2', '/#', '/?query=%00', '/?query_id=%0d%0aX:1&query=SELECT+1', '/?__proto__=1'],
  ...[
    '*',
    '',
    '?',
    '#',
    'x',
    'x:1',
    'host:80',
    'http://',
    'http://[',
    'http://host',
    'http://host/a',
  ],
  ...[
    'http://h:99999/',
    'ftp://h/',
    'file:///etc/passwd',
    'javascript:1',
    'data:,',
    '/\u00e9',
    '/\u0001',
  ],
  ...['/a b', '/\t', `/${'a'.repeat(8_000)}`, `/${'%'.repeat(3_000)}`, `/${'../'.repeat(2_000)}`],
  `/?${'a&'.repeat(3_000)}`,
];

const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'PROPFIND'],
  ...['QUERY', 'PRI', 'get', 'G\u0000T', 'GET\t', '', 'X'.repeat(5_000)],
];

const HEADERS = [
  'Host',
  'Host:',
  ': x',
  ' Host: x',
  'Host : x',
  'X\u0000: 1',
  'X: \u0000',
  'X: \u0001',
  'X: \u00ff',
  'X: a\rY: b',
  'X: a\n Y: b',
  'X:\r\n folded',
  'Host: x\r\nHost: y',
  'Host: [',
  'Host: x:99999',
  'Host: //',
  'Content-Length: x',
  'Content-Length: -1',
  'Content-Length: +1',
  'Content-Length: 1e9',
  'Content-Length: 0x1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 1, 1',
  'Content-Length: 1\r\nContent-Length: 2',
  'Content-Type: ',
  'Content-Type: multipart/form-data',
  'Content-Type: multipart/form-data; boundary=',
  'Content-Type: application/json\r\nContent-Type: text/plain',
  `Content-Type: application/json${' '.repeat(9_000)}x`,
  'Content-Encoding: gzip',
  'Content-Encoding: gzip, gzip',
  'Content-Encoding: x',
  'Accept-Encoding: \u0000',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x',
  `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'x'.repeat(200)}`,
  'Expect: 100-continue',
  'Expect: x',
  'Range: bytes=0-,0-,0-',
  'If-None-Match: "',
  'Cookie: =;;=',
  'TE: trailers',
  'Authorization: Basic',
  'Authorization: Basic \u00ff',
  'Authorization: Bearer ',
  'X-API-Key: ',
  'Origin: null',
  'X-Forwarded-For: x',
  'Forwarded: for="[',
  `X: ${'x'.repeat(70_000)}`,
  `Connection: ${'x, '.repeat(2_000)}`,
  `Sec-WebSocket-Protocol:${' '.repeat(3_000)}x`,
  Array.from({ length: 3_000 }, (_, i) => `x${i}:`).join('\r\n'),
];

/** Pieces after `Transfer-Encoding: chunked`. */
const CHUNKS = [
  '',
  'x\r\n',
  '-1\r\n',
  '0',
  '0\r\n',
  'ffffffffffffffff\r\na',
  '5\r\nab',
  '1\r\nab\r\n0\r\n\r\n',
  '1\na\n0\n\n',
  `1;${'x'.repeat(20_000)}\r\na\r\n0\r\n\r\n`,
  '0\r\nX: y\r\n\r\n',
  '0\r\nContent-Length: 9\r\n\r\n',
  '\u0000\r\n',
  '1 \r\na\r\n0\r\n\r\n',
  '0x1\r\na\r\n0\r\n\r\n',
];

const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
/** Requests that two servers may end at different bytes: at most one answer may follow. */
const SMUGGLING = [
  `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Transfer-Encoding:\u000bchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  `Content-Length: 0\r\nContent-Length: 5\r\n\r\n${SMUGGLED}`,
  `Content-Length: 0, 5\r\n\r\n${SMUGGLED}`,
  `Content-Length: \u000b0\r\n\r\n${SMUGGLED}`,
];

const WHOLE: readonly Input[] = [
  ['nothing', ''],
  ['line breaks', '\r\n\r\n\r\n'],
  ['NULs', Buffer.alloc(4_096)],
  ['0xFF', Buffer.alloc(4_096, 0xff)],
  ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex')],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u0000\u0000\u0000\u0004'],
  ['PROXY protocol', 'PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['HTTP/0.9', 'GET /\r\n'],
  ['HTTP/0.9 of //', 'GET //\r\n\r\n'],
  ['HTTP/1.0 without Host', 'GET // HTTP/1.0\r\n\r\n'],
  ['HTTP/2.0', 'GET / HTTP/2.0\r\nHost: x\r\n\r\n'],
  ['HTTP/9.9', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
  ['another protocol', 'GET / FTP/1.1\r\nHost: x\r\n\r\n'],
  ['line feeds alone', 'GET // HTTP/1.1\nHost: x\n\n'],
  ['no end of the headers', 'GET / HTTP/1.1\r\nHost: x\r\nX'],
  ['a cut request line', 'GE'],
  ['200 requests at once', 'GET // HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200)],
  [
    'a body, then garbage',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}\u0000\u0000!!',
  ],
  ['a cut body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc'],
  [
    'a cut form',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 9\r\n\r\n--b\r\nabc',
  ],
];

/** All inputs, for each of the paths that a server knows. */
function inputs(paths: readonly string[]): Input[] {
  const of = (path: string): Input[] => [
    ...METHODS.map(
      (method): Input => [
        `method ${method.slice(0, 20)} of ${path}`,
        `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`,
      ],
    ),
    ...HEADERS.map(
      (line): Input => [
        `header ${line.slice(0, 60)} of ${path}`,
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${line}\r\n\r\n`,
      ],
    ),
    ...CHUNKS.map(
      (chunks): Input => [
        `chunks ${chunks.slice(0, 30)} of ${path}`,
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
      ],
    ),
    ...SMUGGLING.map(
      (rest): Input => [
        `smuggling ${rest.slice(0, 60)} of ${path}`,
        `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${rest}`,
      ],
    ),
  ];
  const targets = TARGETS.flatMap((target) =>
    ['GET', 'POST'].map(
      (method): Input => [
        `${method} ${target.slice(0, 60)}`,
        `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      ],
    ),
  );
  return [...WHOLE, ...targets, ...paths.flatMap(of)];
}

/**
 * Plays all inputs against a server, each on a connection of its own, whose sending half then ends.
 * Every connection must end without an answer of 5xx, no second answer may follow a request of
 * unclear length, and afterwards the same process must still be right in `check`.
 * @param check asks the server something and asserts the answer
 */
export async function playCorpus(of: {
  readonly url: string;
  readonly paths: readonly string[];
  readonly child: ChildProcess;
  check(): Promise<unknown>;
}): Promise<void> {
  const { url, paths, child, check } = of;
  const port = Number(new URL(url).port);
  const pid = child.pid;
  const all = inputs(paths);
  const wrong: string[] = [];
  const takeOne = async () => {
    for (let input = all.pop(); input !== undefined; input = all.pop()) {
      const [name, bytes] = input;
      const answers = statusesIn(await exchange(port, bytes));
      const isSmuggling = name.startsWith('smuggling');
      const isWrong = answers.some((status) => status >= 500 && !REFUSALS.has(status));
      if (isWrong || (isSmuggling && answers.length > 1)) wrong.push(`${name}: ${answers}`);
      if (child.exitCode !== null || child.signalCode !== null) wrong.push(`${name}: it ended`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, takeOne));
  expect(wrong).toEqual([]);
  await check();
  expect([child.pid, child.exitCode, child.signalCode]).toEqual([pid, null, null]);
}

/** Answers of 5xx that refuse a request: the method, for a while, and the version (by uWS). */
const REFUSALS: ReadonlySet<number> = new Set([501, 503, 505]);
const EXCHANGE_MS = 90_000;

/** Sends bytes and ends. @returns what the server sent until it closed the connection */
async function exchange(port: number, bytes: string | Buffer): Promise<string> {
  const chunks: Buffer[] = [];
  let isOver = false;
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('end', () => socket.destroy());
  socket.on('error', () => undefined);
  socket.once('close', () => {
    isOver = true;
  });
  socket.end(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  await waitFor('the connection to end', async () => isOver, EXCHANGE_MS).finally(() =>
    socket.destroy(),
  );
  return Buffer.concat(chunks).toString('latin1');
}

function statusesIn(text: string): number[] {
  const lines = text.matchAll(/^HTTP\/1\.[01] (\d{3})\b/gm);
  return Array.from(lines, ([, status]) => Number(status)).filter((status) => status !== 100);
}
