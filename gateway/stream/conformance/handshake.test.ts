import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { waitFor } from '../../../testing/wait.ts';
import { type Client, closeClients, connect } from '../testing/stream-client.ts';
import {
  closeRawClients,
  type HandshakeShape,
  handshakeText,
  openRaw,
  type RawClient,
  STREAM_PATH,
} from './testing/raw-client.ts';
import { startTestStream, type TestStream } from './testing/test-stream.ts';
import { closeFrame, encodeFrame, OPCODE, textFrame } from './testing/wire.ts';

let stream: TestStream;
let other: Client;

beforeAll(async () => {
  stream = await startTestStream();
});

beforeEach(async () => {
  other = await connect(stream.url, { key: stream.key });
  await other.until('welcome');
});

/** After each test other connections must still be served, and new ones accepted. */
afterEach(async () => {
  other.send({ op: 'ping', id: 'other' });
  expect(await other.until('pong')).toMatchObject({ id: 'other' });
  (await stream.open()).abort();
  closeClients();
  closeRawClients();
});

afterAll(async () => {
  await stream?.close();
});

async function shake(shape: HandshakeShape): Promise<RawClient> {
  const client = await openRaw(stream.port);
  client.write(Buffer.from(handshakeText(shape), 'latin1'));
  await client.until('an answer', () => client.head().includes('\r\n\r\n'));
  return client;
}

const statusOf = (client: RawClient) => Number(client.head().slice(9, 12));

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${stream.process.opsUrl}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

describe('a handshake', () => {
  test('is answered as RFC 6455 requires, with our subprotocol if it is offered', async () => {
    const client = await shake({ headers: { 'Sec-WebSocket-Protocol': 'x, pills.v1.json' } });
    const accept = createHash('sha1')
      .update('dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
      .digest('base64');
    expect(client.head()).toContain(`\r\nSec-WebSocket-Accept: ${accept}\r\n`);
    expect(client.head()).toContain('\r\nSec-WebSocket-Protocol: pills.v1.json\r\n');
  });

  test.each(['graphql-ws', 'PILLS.V1.JSON', 'pills.v1', ''])(
    'names no subprotocol where %j is offered',
    async (offered) => {
      const client = await shake({ headers: { 'Sec-WebSocket-Protocol': offered } });
      expect(statusOf(client)).toBe(101);
      expect(client.head().toLowerCase()).not.toContain('sec-websocket-protocol');
    },
  );

  test('negotiates no extension', async () => {
    const client = await shake({
      headers: { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' },
    });
    expect(statusOf(client)).toBe(101);
    expect(client.head().toLowerCase()).not.toContain('sec-websocket-extensions');
  });

  const header = (name: string, value: string | null) => ({ headers: { [name]: value } });
  test.each<[string, number, HandshakeShape]>([
    ['without a key', 426, header('Sec-WebSocket-Key', null)],
    ['with a key that is too short', 426, header('Sec-WebSocket-Key', 'abc')],
    ['with a key that is too long', 426, header('Sec-WebSocket-Key', 'a'.repeat(100))],
    ['without a version', 426, header('Sec-WebSocket-Version', null)],
    ['of version 8', 426, header('Sec-WebSocket-Version', '8')],
    ['without Upgrade', 426, header('Upgrade', null)],
    ['with another Upgrade', 426, header('Upgrade', 'h2c')],
    ['without Connection', 426, header('Connection', null)],
    ['with another Connection', 426, header('Connection', 'keep-alive')],
    ['by POST', 426, { method: 'POST' }],
    ['by PUT', 426, { method: 'PUT' }],
    ['to another path', 404, { path: '/api/streams' }],
    ['to the path with a slash', 404, { path: `${STREAM_PATH}/` }],
    ['to the path in capitals', 404, { path: STREAM_PATH.toUpperCase() }],
  ])('%s is answered with %i as a problem', async (_what, status, shape) => {
    const client = await shake(shape);
    expect(statusOf(client)).toBe(status);
    expect(client.head()).toContain('\r\ncontent-type: application/problem+json\r\n');
    if (status === 426) {
      expect(client.head()).toContain('\r\nupgrade: websocket\r\n');
      expect(client.head()).toContain('\r\nsec-websocket-version: 13\r\n');
    }
  });

  test.each<[string, number, HandshakeShape]>([
    ['without Host', 400, header('Host', null)],
    [
      'with two kinds of length',
      400,
      {
        headers: { 'Content-Length': '5', 'Transfer-Encoding': 'chunked' },
      },
    ],
    ['of HTTP/1.0', 505, { version: 'HTTP/1.0' }],
    ['of HTTP/2', 505, { version: 'HTTP/2.0' }],
    ['with 4 KiB of one header', 431, header('X-Long', 'a'.repeat(4_096))],
    [
      'with 200 headers',
      431,
      {
        headers: Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x-${n}`, '1'])),
      },
    ],
  ])('%s is answered with %i, and TCP ends', async (_what, status, shape) => {
    const client = await shake(shape);
    expect(statusOf(client)).toBe(status);
    expect(await client.ended).toMatchObject({ tcp: 'end' });
  });

  test('may arrive byte by byte after its first line', async () => {
    const client = await openRaw(stream.port);
    const text = handshakeText({ headers: { 'X-API-Key': stream.key } });
    const at = text.indexOf('\r\n') + 2;
    client.write(text.slice(0, at));
    for (const byte of Buffer.from(text.slice(at))) client.write(Buffer.of(byte));
    await client.until('welcome', () => client.frames.length > 0);
    expect(client.frames[0]).toMatchObject({ type: 'welcome' });
  });

  test('must be answered first: frames sent with it are not read (RFC 6455 section 4.1)', async () => {
    const client = await openRaw(stream.port);
    const handshake = handshakeText({ headers: { 'X-API-Key': stream.key } });
    client.write(handshake, textFrame('{"op":"ping","id":"early"}'));
    await client.until('welcome', () => client.frames.length > 0);
    client.send({ op: 'ping', id: 'later' });
    const pongs = () => client.frames.filter(({ type }) => type === 'pong').map(({ id }) => id);
    await client.until('a pong', () => pongs().includes('later'));
    expect(pongs()).toEqual(['later']);
  });

  test('that never ends is cut without an answer', async () => {
    const texts = [
      '',
      handshakeText().slice(0, 40),
      'hello\r\n\r\n',
      handshakeText().replace('Upgrade:', 'Upgrade'),
    ];
    const clients = await Promise.all(texts.map(() => openRaw(stream.port)));
    clients.forEach((client, at) => {
      client.write(texts[at]!);
    });
    for (const client of clients) {
      expect(await client.ended).toMatchObject({ code: undefined });
      expect(client.head()).toBe('');
    }
  });
});

describe('a peer that goes away', () => {
  const countOf = () => metric('pillole_stream_connections');
  /** Only the witness of this test is left: closed connections are not counted. */
  const forgotten = () =>
    waitFor('the other connections to be removed', async () => (await countOf()) === 1);

  test('during the handshake, by a reset', async () => {
    for (let at = 1; at < 150; at += 10) {
      const client = await openRaw(stream.port);
      client.write(handshakeText({ headers: { 'X-API-Key': stream.key } }).slice(0, at));
      client.abort();
    }
    await forgotten();
  });

  test.each(['reset', 'end', 'close frame'])('while its key is checked, by a %s', async (way) => {
    const code = way === 'close frame' ? 1000 : undefined;
    for (let left = 10; left > 0; left -= 1) {
      // An unknown key requires a database lookup.
      const key = await stream.newKey('pro');
      const client = await openRaw(stream.port);
      stream.proxy.set('', 'frozen');
      try {
        client.write(handshakeText({ headers: { 'X-API-Key': key } }));
        await client.until('the handshake', () => client.head() !== '');
        client.write(textFrame('{"op":"ping"}'));
        if (way === 'reset') client.abort();
        else if (way === 'end') client.socket.end();
        else client.write(closeFrame(1000));
        const ending = await client.ended;
        // On a busy machine the lookup may have timed out before.
        if (client.frames.length === 0) expect(ending.code).toBe(code);
        else expect(client.frames).toMatchObject([{ code: 'accounts_unavailable', close: 4003 }]);
      } finally {
        stream.proxy.set('', 'open');
      }
    }
    await forgotten();
  });

  test.each(['reset', 'end'])('after it has subscribed, by a %s', async (way) => {
    const client = await stream.open();
    client.send({ op: 'subscribe', symbols: ['*'] });
    await client.until('live', () => client.frames.some(({ type }) => type === 'live'));
    if (way === 'reset') client.abort();
    else client.socket.end();
    await forgotten();
  });

  test('in the middle of a frame, is cut when it half-closes', async () => {
    const client = await stream.open();
    client.write(textFrame('{"op":"ping"}').subarray(0, 9));
    client.write(encodeFrame({ opcode: OPCODE.pong, payload: Buffer.alloc(0) }).subarray(0, 1));
    client.socket.end();
    expect(await client.ended).toMatchObject({ code: undefined });
    await forgotten();
  });
});
