import http from 'node:http';
import net from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * How a proxy names the client: it adds the address to `X-Forwarded-For`, as nginx does with
 * `$proxy_add_x_forwarded_for`; or it opens the connection with a PROXY header, version 2, and
 * forwards bytes, as HAProxy does with `send-proxy-v2`.
 */
export type ProxyKind = 'x-forwarded-for' | 'proxy-v2';

/** A reverse proxy in front of one process. */
export interface FrontProxy {
  /** The address of the proxy for clients that come from `client`. */
  portFor(client: string): Promise<number>;
  close(): void;
}

/** @param targetPort `path`: the first member of the path, as operators.md shows for nginx */
export function openFrontProxy(kind: 'x-forwarded-for', targetPort: 'path'): FrontProxy;
export function openFrontProxy(kind: ProxyKind, targetPort: number): FrontProxy;
export function openFrontProxy(kind: ProxyKind, targetPort: number | 'path'): FrontProxy {
  const listeners: net.Server[] = [];
  const sockets = new Set<net.Socket>();
  const track = (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  return {
    async portFor(client) {
      const listener =
        kind === 'proxy-v2'
          ? net.createServer((socket) => {
              const upstream = track(net.connect(Number(targetPort), '127.0.0.1'));
              upstream.write(proxyHeader(client));
              join(track(socket), upstream);
            })
          : createHttpProxy(client, targetPort).on('connection', track);
      listeners.push(listener);
      await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
      return (listener.address() as net.AddressInfo).port;
    },
    close() {
      for (const listener of listeners) listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A PROXY header, version 2, of a TCP connection from `client`. */
export function proxyHeader(client: string): Buffer {
  const address = Buffer.from(ipaddr.parse(client).toByteArray());
  const addresses = Buffer.concat([address, Buffer.alloc(address.length), Buffer.alloc(4)]);
  const family = address.length === 4 ? 0x11 : 0x21;
  return Buffer.concat([
    Buffer.from('0d0a0d0a000d0a515549540a', 'hex'),
    Buffer.of(0x21, family, 0, addresses.length),
    addresses,
  ]);
}

function createHttpProxy(client: string, targetPort: number | 'path'): http.Server {
  const forward = (from: http.IncomingMessage) => {
    const { method, url = '' } = from;
    const [, first, rest] = /^\/(\d+)(\/.*)$/.exec(url) ?? [];
    const [port, path] = targetPort === 'path' ? [Number(first), rest] : [targetPort, url];
    const chain = [from.headers['x-forwarded-for'], client].flat().filter(Boolean).join(', ');
    const headers = { ...from.headers, 'x-forwarded-for': chain };
    return http.request({ host: '127.0.0.1', port, method, path, headers });
  };
  const server = http.createServer((request, response) => {
    const upstream = forward(request).on('response', (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    request.pipe(upstream);
  });
  server.on('upgrade', (request, socket: net.Socket) => {
    const upstream = forward(request);
    const head = ({ statusCode, statusMessage, rawHeaders }: http.IncomingMessage) => {
      const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
      for (let i = 0; i < rawHeaders.length; i += 2)
        lines.push(rawHeaders.slice(i, i + 2).join(': '));
      return `${lines.join('\r\n')}\r\n\r\n`;
    };
    upstream.on('upgrade', (answer, target: net.Socket, first: Buffer) => {
      socket.write(head(answer));
      socket.write(first);
      join(socket, target);
    });
    upstream.on('response', (answer) => {
      socket.write(head(answer));
      answer.pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    upstream.end();
  });
  return server;
}

function join(one: net.Socket, other: net.Socket): void {
  one.pipe(other).pipe(one);
  for (const [socket, peer] of [
    [one, other],
    [other, one],
  ] as const) {
    socket.on('error', () => peer.destroy());
    socket.on('close', () => peer.destroy());
  }
}
